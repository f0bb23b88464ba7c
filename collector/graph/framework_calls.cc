// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/framework_calls.h"

#include <algorithm>
#include <array>

#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using std::string_view;

bool contains_part(string_view text, string_view part) {
  return text.find(part) != string_view::npos;
}

/// A framework function that makes a collective, with a part of its file name. Empty function: all
/// functions of the file, which are named after the operations they wrap; empty operation: the
/// function's own name.
struct WrapperRow {
  string_view function;
  string_view file;
  string_view operation;
};

constexpr std::array<WrapperRow, 14> kWrappers = {{
    {"", "deepspeed/comm/", ""},
    {"_allgather_params_coalesced", "deepspeed/runtime/zero/partition_parameters.py",
     "all_gather_into_tensor"},
    {"all_gather_coalesced", "deepspeed/runtime/zero/partition_parameters.py",
     "all_gather_into_tensor"},
    {"_dist_allgather_fn", "deepspeed/runtime/zero/partition_parameters.py",
     "all_gather_into_tensor"},
    {"wait", "deepspeed/runtime/zero/partition_parameters.py", "all_gather_into_tensor"},
    {"fetch_sub_module", "deepspeed/runtime/zero/partitioned_param_coordinator.py",
     "all_gather_into_tensor"},
    {"__reduce_and_partition_ipg_grads", "deepspeed/runtime/zero/stage3.py",
     "reduce_scatter_tensor"},
    {"", "vllm/distributed/", ""},
    {"", "sglang/srt/distributed/", ""},
    {"", "horovod/torch/mpi_ops.py", ""},
    {"_reduce", "megatron/core/tensor_parallel/mappings.py", "all_reduce"},
    {"_gather_along_last_dim", "megatron/core/tensor_parallel/mappings.py",
     "all_gather_into_tensor"},
    {"_unshard", "torch/distributed/fsdp/", "all_gather_into_tensor"},
    {"unshard", "torch/distributed/fsdp/", "all_gather_into_tensor"},
}};

/// A framework function, with a part of its file name, and the phase of a step that it belongs to.
struct PhaseRow {
  string_view function;
  string_view file;
  string_view phase;
};

constexpr std::array<PhaseRow, 26> kPhases = {{
    {"generate", "generation/utils.py", "generate"},
    {"_sample", "generation/utils.py", "generate"},
    {"_beam_search", "generation/utils.py", "generate"},
    {"generate", "deepspeed/runtime/hybrid_engine.py", "generate"},
    {"generate_sequences", "verl/", "generate"},
    {"generate", "vllm/entrypoints/", "generate"},
    {"generate", "megatron/", "generate"},
    {"forward_extend", "sglang/srt/", "prefill"},
    {"run_batch", "sglang/srt/managers/scheduler.py", "forward"},
    {"forward_decode", "sglang/srt/", "decode"},
    {"recv_requests", "sglang/srt/managers/scheduler.py", "receive of requests"},
    {"execute_model", "vllm/", "forward"},
    {"sample_tokens", "vllm/", "sampling"},
    {"propose", "vllm/v1/spec_decode/", "draft"},
    {"forward", "deepspeed/runtime/engine.py", "forward"},
    {"backward", "deepspeed/runtime/engine.py", "backward"},
    {"step", "deepspeed/runtime/engine.py", "optimizer step"},
    {"save_checkpoint", "deepspeed/runtime/engine.py", "save"},
    {"save_pretrained", "transformers/", "save"},
    {"_save_checkpoint", "transformers/trainer.py", "save"},
    {"save", "torch/distributed/checkpoint/", "save"},
    {"save_checkpoint", "megatron/", "save"},
    {"_engine_run_backward", "torch/autograd/", "backward"},
    {"forward", "torch/nn/parallel/distributed.py", "forward"},
    {"evaluation_loop", "transformers/trainer.py", "evaluation"},
    {"step", "torch/optim/", "optimizer step"},
}};

string_view bare_name(const stacks::Frame& frame) {
  string_view name = plain_name(frame.function);
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name;
}

}  // namespace

string_view wrapped_operation(std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    bool wraps = false;
    for (const WrapperRow& row : kWrappers) {
      if (!contains_part(frame.file, row.file) ||
          (!row.function.empty() && plain_name(frame.function) != row.function)) {
        continue;
      }
      const Operation* named =
          row.operation.empty() ? operation_of(bare_name(frame)) : operation_of(row.operation);
      if (named != nullptr) {
        return named->operation;
      }
      wraps = true;
    }
    if (!wraps && !model::is_torch_file(frame.file)) {
      return {};
    }
  }
  return {};
}

string_view phase_of(std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    const auto* const row = std::find_if(kPhases.begin(), kPhases.end(), [&](const PhaseRow& one) {
      return plain_name(frame.function) == one.function && contains_part(frame.file, one.file);
    });
    if (row != kPhases.end()) {
      return row->phase;
    }
  }
  return {};
}

}  // namespace ddpdoctor::graph
