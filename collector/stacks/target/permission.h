// SPDX-License-Identifier: Apache-2.0
// Why the kernel allows or refuses access to a process, as a sentence that a person can act on.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace ddpdoctor::stacks {

/// Whether memory and registers of `pid` are readable. The error names the reason (user,
/// capability, Yama, container or state), the hint the remedy.
base::Result<void> may_observe(pid_t pid);

}  // namespace ddpdoctor::stacks
