// SPDX-License-Identifier: Apache-2.0
// All flight recorders of a process. torch has one for gloo in libtorch_cpu and one for NCCL in
// libtorch_cuda (libtorch_hip); in a job that uses both, one of them alone is incomplete.
#pragma once

#include <string_view>
#include <vector>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

/// True if a group has this backend, alone or for one kind of device ("cpu:gloo,cuda:nccl").
bool has_backend(const std::vector<TorchGroup>& groups, std::string_view backend);

/// Adds the records of a process with known groups. `state.recorder_read` is true only if the
/// recorder of every backend of its groups was read; `state.problem` names one that was not.
void read_recorders(Target& target, PythonReader* python, const TorchLayouts& layouts,
                    TorchState& state);

}  // namespace ddpdoctor::stacks
