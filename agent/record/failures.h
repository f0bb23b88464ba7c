// SPDX-License-Identifier: Apache-2.0
// Calls that failed because something of the machine was used up.
#pragma once

namespace ddpdoctor::agent {

/// Records a failed libc call when errno says that descriptors (EMFILE, ENFILE) or room (ENOSPC)
/// ran out; errno stays. `descriptor` is what was written to, or -1.
void call_failed(const char* call, int descriptor = -1);

}  // namespace ddpdoctor::agent
