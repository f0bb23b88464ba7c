// SPDX-License-Identifier: Apache-2.0
// What torch.distributed knows inside a process, read from outside: groups, call arguments, the
// flight recorder's ring. Layouts come from releases and are proven by what lies in memory;
// unproven means left out, and `problem` says why.
#pragma once

#include <optional>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// Nothing when the process has no torch.distributed. `python` may be null: then only the flight
/// recorder is read, without calls.
std::optional<TorchState> read_torch_state(Target& target, PythonReader* python);

/// Teaches the reader to spell torch's objects in locals (torch_values.h); call it before decoding
/// frames. Does nothing in a process without torch. Both must outlive the reader's use of it.
void show_torch_values(Target& target, PythonReader& python);

}  // namespace ddpdoctor::stacks
