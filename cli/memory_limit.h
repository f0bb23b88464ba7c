// SPDX-License-Identifier: Apache-2.0
// A limit for our own memory while untrusted files are read.
#pragma once

namespace ddpdoctor::cli {

/// The job's files are read unmodified, and a crafted one can make libdw allocate gigabytes
/// (docs/adr: native unwinding).
void limit_memory();

}  // namespace ddpdoctor::cli
