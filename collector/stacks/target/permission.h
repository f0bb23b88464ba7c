// SPDX-License-Identifier: Apache-2.0
// Why the kernel lets us look into a process, or does not: the sentence a person can act upon.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace ddpdoctor::stacks {

/// Whether memory and registers of `pid` may be read. The error says which of user, capability,
/// Yama, container or state it is, and the hint the remedy.
base::Result<void> may_observe(pid_t pid);

}  // namespace ddpdoctor::stacks
