// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/framework_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using std::string_view;

bool contains_part(string_view text, string_view part) {
  return text.find(part) != string_view::npos;
}

/// How the functions of a file are named after operations.
enum class Names {
  kExact,   // "all_reduce", "_all_reduce"
  kInside,  // "tp_allgather", "mpi_recv_object": with the group before it or the data behind it
};

/// A framework function that makes a collective, with a part of its file name. Empty function: all
/// functions of the file, which are named after the operations they wrap; empty operation: the
/// function's own name.
struct WrapperRow {
  string_view function;
  string_view file;
  string_view operation;
  Names names = Names::kExact;
};

constexpr std::array<WrapperRow, 26> kWrappers = {{
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
    {"sync_all_async_calls", "strategies/async_utils.py", "all_reduce"},  // of Megatron
    {"_unshard", "torch/distributed/fsdp/", "all_gather_into_tensor"},
    {"unshard", "torch/distributed/fsdp/", "all_gather_into_tensor"},
    {"rendezvous", "torch/distributed/_symmetric_memory/", "symmetric-memory rendezvous"},
    // Bindings through ctypes have the names of NCCL's functions.
    {"ncclCommInitRank", "", "ncclCommInitRank"},
    {"ncclCommInitRankConfig", "", "ncclCommInitRank"},
    {"ncclCommSplit", "", "ncclCommSplit"},
    {"ncclCommWindowRegister", "", "ncclCommWindowRegister"},
    // Over mpi4py, whose methods have no Python frames, and over NCCL through bindings.
    {"", "tensorrt_llm/_torch/distributed/communicator.py", "", Names::kInside},
    {"", "tensorrt_llm/_utils.py", "", Names::kInside},
    {"", "chainermn/communicators/", "", Names::kInside},
    {"", "cupyx/distributed/_nccl_comm.py", "", Names::kInside},
    {"", "paddle/distributed/communication/", "", Names::kInside},
    {"", "xgboost/collective.py", "", Names::kInside},
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

/// MPI's spelling of the operations of torch.
constexpr std::array<std::pair<string_view, string_view>, 6> kSpellings = {{
    {"allgather", "all_gather"},
    {"allgatherv", "all_gather"},
    {"allreduce", "all_reduce"},
    {"alltoall", "all_to_all"},
    {"bcast", "broadcast"},
    {"gatherv", "gather"},
}};

/// The longest run of the words of a name that is an operation: "all_gather" of "tp_allgather",
/// "send" of "mpi_send_object".
const Operation* operation_inside(string_view name) {
  const Operation* found = nullptr;
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < name.size(); begin = name.find('_', begin) + 1) {
    for (std::size_t end = begin; end != string_view::npos && end < name.size();) {
      end = name.find('_', end + 1);
      string_view words = name.substr(begin, end == string_view::npos ? end : end - begin);
      const std::size_t length = words.size();
      const auto* const spelt =
          std::find_if(kSpellings.begin(), kSpellings.end(),
                       [words](const auto& one) { return one.first == words; });
      words = spelt == kSpellings.end() ? words : spelt->second;
      const Operation* const operation = length > longest ? operation_of(words) : nullptr;
      longest = operation == nullptr ? longest : length;
      found = operation == nullptr ? found : operation;
    }
    if (name.find('_', begin) == string_view::npos) {
      break;
    }
  }
  return found;
}

const Operation* operation_in(const WrapperRow& row, const stacks::Frame& frame) {
  if (!row.operation.empty()) {
    return operation_of(row.operation);
  }
  return row.names == Names::kExact ? operation_of(bare_name(frame))
                                    : operation_inside(bare_name(frame));
}

/// What kWrappers says of a function.
struct WrapperFunction {
  bool listed = false;  // with an operation or as a helper in the file of a wrapper
  const Operation* operation = nullptr;
  string_view package;  // "deepspeed/"
};

WrapperFunction wrapper_function(const stacks::Frame& frame) {
  WrapperFunction out;
  for (const WrapperRow& row : kWrappers) {
    if (out.operation == nullptr && contains_part(frame.file, row.file) &&
        (row.function.empty() || plain_name(frame.function) == row.function)) {
      out.listed = true;
      out.operation = operation_in(row, frame);
      out.package = row.file.substr(0, row.file.find('/') + 1);
    }
  }
  return out;
}

}  // namespace

WrappedCall wrapped_call(std::span<const stacks::Frame> frames) {
  WrappedCall out;
  const stacks::Frame* inside = nullptr;  // a decorator of the framework around the wait itself
  for (const stacks::Frame& frame : frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    const WrapperFunction one = wrapper_function(frame);
    const bool found = !out.operation.empty();
    const bool of_it = one.operation != nullptr && !one.package.empty();
    if ((found && one.operation == nullptr) ||
        (!found && inside != nullptr && !(of_it && contains_part(inside->file, one.package)))) {
      break;
    }
    if (!found && !one.listed && !model::is_torch_file(frame.file)) {
      inside = &frame;
      continue;
    }
    if (one.operation != nullptr) {
      out.operation = out.operation.empty() ? one.operation->operation : out.operation;
      out.called = &frame;
    }
  }
  return out;
}

std::vector<const stacks::Frame*> callers_of_wrapper(const model::Thread& thread,
                                                     const stacks::Frame* wrapper) {
  std::vector<const stacks::Frame*> out = model::user_frames(thread);
  const auto outside = std::find_if(out.begin(), out.end(), [wrapper](const stacks::Frame* frame) {
    return wrapper == nullptr || frame > wrapper;  // both are in thread.frames
  });
  if (outside != out.end()) {
    out.erase(out.begin(), outside);
  }
  return out;
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
