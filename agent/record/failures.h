// SPDX-License-Identifier: Apache-2.0
// Calls that failed because a resource of the machine was exhausted.
#pragma once

namespace ddpdoctor::agent {

/// Records a failed libc call if errno shows that descriptors (EMFILE, ENFILE) or space (ENOSPC)
/// ran out; preserves errno. `descriptor` is the one written to, or -1.
void call_failed(const char* call, int descriptor = -1);

}  // namespace ddpdoctor::agent
