// SPDX-License-Identifier: Apache-2.0
// A ceiling for our own memory while foreign files are read.
#pragma once

namespace ddpdoctor::cli {

/// The job's files are read as they are, and a crafted one can make libdw ask for gigabytes
/// (docs/adr: native unwinding).
void limit_memory();

}  // namespace ddpdoctor::cli
