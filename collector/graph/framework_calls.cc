// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/framework_calls.h"

#include <algorithm>
#include <array>

#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using std::string_view;

bool contains(string_view text, string_view part) {
  return text.find(part) != string_view::npos;
}

/// Files whose functions are named as the operations they wrap.
constexpr std::array<string_view, 6> kWrappers = {
    "deepspeed/comm/",          "deepspeed/runtime/zero/partition_parameters.py",
    "vllm/distributed/",        "sglang/srt/distributed/",
    "horovod/torch/mpi_ops.py", "megatron/core/tensor_parallel/mappings.py"};

/// A function of a framework, with a piece of its file, and the phase of a step that it is.
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

bool is_wrapper(const stacks::Frame& frame) {
  return std::any_of(kWrappers.begin(), kWrappers.end(),
                     [&frame](string_view file) { return contains(frame.file, file); });
}

string_view bare_name(const stacks::Frame& frame) {
  string_view name = plain_name(frame.function);
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name;
}

}  // namespace

string_view wrapped_operation(std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    if (frame.language != stacks::Language::kPython || model::is_torch_file(frame.file)) {
      continue;
    }
    if (!is_wrapper(frame)) {
      return {};
    }
    if (const Operation* operation = operation_of(bare_name(frame))) {
      return operation->operation;
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
      return plain_name(frame.function) == one.function && contains(frame.file, one.file);
    });
    if (row != kPhases.end()) {
      return row->phase;
    }
  }
  return {};
}

}  // namespace ddpdoctor::graph
