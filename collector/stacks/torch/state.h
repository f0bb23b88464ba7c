// SPDX-License-Identifier: Apache-2.0
// The state of torch.distributed in a process, read from outside: groups, call arguments, the
// flight recorder's ring. Layouts come from releases and are verified against memory; unverified
// data is omitted, and `problem` has the reason.
#pragma once

#include <optional>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// Nothing if the process does not use torch.distributed. `python` may be null: then only the
/// flight recorder is read, without calls.
std::optional<TorchState> read_torch_state(Target& target, PythonReader* python);

/// Enables the reader to render torch's objects in locals (torch_values.h); call it before decoding
/// frames. Does nothing in a process without torch. Both must outlive the reader's use of it.
void show_torch_values(Target& target, PythonReader& python);

}  // namespace ddpdoctor::stacks
