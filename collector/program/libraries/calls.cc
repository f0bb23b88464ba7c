// SPDX-License-Identifier: Apache-2.0
// What libraries do with the other ranks: which collective a call makes, which loops it runs, what
// it calls back, whom it lets in. torch 2.13, lightning 2.5, accelerate 1.x, transformers 4.5x,
// deepspeed 0.16, torchmetrics 1.x.
#include <algorithm>
#include <array>

#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::program {
namespace {

constexpr auto kMakes = CallDoes::kCollective;
constexpr auto kAgrees = CallDoes::kAgrees;
constexpr auto kLoops = CallDoes::kLoops;
constexpr auto kShields = CallDoes::kShields;
constexpr auto kHolds = CallDoes::kHoldsGradients;
constexpr auto kFrees = CallDoes::kFreesOfGradients;

// module, owner, name, what it does, the first collective
constexpr auto kRows = std::to_array<CallRow>({
    {"torch.distributed", "", "all_reduce", kAgrees, "all_reduce"},
    {"torch.distributed", "", "all_reduce_coalesced", kAgrees, "all_reduce"},
    {"torch.distributed", "", "broadcast", kAgrees, "broadcast"},
    {"torch.distributed", "", "broadcast_object_list", kAgrees, "broadcast"},
    {"torch.distributed", "", "all_gather", kAgrees, "all_gather"},
    {"torch.distributed", "", "all_gather_object", kAgrees, "all_gather"},
    {"torch.distributed", "", "all_gather_into_tensor", kAgrees, "all_gather_into_tensor"},
    {"torch.distributed", "", "reduce", kMakes, "reduce"},
    {"torch.distributed", "", "reduce_scatter", kMakes, "reduce_scatter"},
    {"torch.distributed", "", "reduce_scatter_tensor", kMakes, "reduce_scatter_tensor"},
    {"torch.distributed", "", "gather", kMakes, "gather"},
    {"torch.distributed", "", "gather_object", kMakes, "gather"},
    {"torch.distributed", "", "scatter", kMakes, "scatter"},
    {"torch.distributed", "", "scatter_object_list", kMakes, "scatter"},
    {"torch.distributed", "", "all_to_all", kMakes, "all_to_all"},
    {"torch.distributed", "", "all_to_all_single", kMakes, "all_to_all_single"},
    {"torch.distributed", "", "barrier", kMakes, "barrier"},
    {"torch.distributed", "", "monitored_barrier", kMakes, "barrier"},
    {"torch.distributed", "", "new_group", kMakes, "barrier"},
    {"torch.distributed", "", "init_device_mesh", kMakes, "barrier"},
    // DDP and FSDP: forward, backward and what stands around them
    {"torch.nn.parallel", "DistributedDataParallel", "forward", kMakes, "broadcast"},
    {"torch.nn.parallel", "DistributedDataParallel", "join", kShields, "all_reduce"},
    {"torch.nn.parallel", "DistributedDataParallel", "no_sync", kHolds, ""},
    {"torch.distributed.algorithms", "Join", "", kShields, "all_reduce"},
    {"torch", "", "no_grad", kFrees, ""},
    {"torch", "", "inference_mode", kFrees, ""},
    {"torch.distributed.fsdp", "FullyShardedDataParallel", "forward", kMakes,
     "all_gather_into_tensor"},
    {"torch.distributed.fsdp", "FullyShardedDataParallel", "clip_grad_norm_", kAgrees,
     "all_reduce"},
    {"torch.distributed.fsdp", "FullyShardedDataParallel", "summon_full_params", kMakes,
     "all_gather_into_tensor"},
    {"torch.distributed.fsdp", "FullyShardedDataParallel", "state_dict", kMakes,
     "all_gather_into_tensor"},
    {"torch.distributed.fsdp", "FullyShardedDataParallel", "optim_state_dict", kMakes,
     "all_gather"},
    {"torch.distributed.fsdp", "FSDPModule", "unshard", kMakes, "all_gather_into_tensor"},
    {"torch.distributed.fsdp", "FSDPModule", "set_requires_gradient_sync", kHolds, ""},
    {"torch.distributed.fsdp", "", "fully_shard", kMakes, ""},
    {"torch.distributed.optim", "ZeroRedundancyOptimizer", "consolidate_state_dict", kMakes,
     "broadcast"},
    {"torch.distributed.checkpoint", "", "save", kMakes, "gather"},
    {"torch.distributed.checkpoint", "", "async_save", kMakes, "gather"},
    {"torch.distributed.checkpoint", "", "load", kMakes, "all_gather"},
    {"torch.distributed.checkpoint", "", "get_state_dict", kMakes, "all_gather"},
    {"torch.distributed.checkpoint", "", "get_model_state_dict", kMakes, "all_gather"},
    {"torch.distributed.checkpoint", "", "set_model_state_dict", kMakes, "broadcast"},
    {"torch.distributed.tensor", "", "distribute_tensor", kMakes, "scatter"},
    {"torch.distributed.tensor", "DTensor", "full_tensor", kAgrees, "all_gather_into_tensor"},
    {"torch.distributed.tensor", "DTensor", "redistribute", kMakes, ""},
    {"torch.distributed.pipelining", "PipelineStage", "", kMakes, "send"},
    {"torch.distributed.pipelining", "Schedule1F1B", "step", kMakes, "send"},
    {"torch.distributed.pipelining", "ScheduleGPipe", "step", kMakes, "send"},
    {"torch.distributed.pipelining", "ScheduleInterleaved1F1B", "step", kMakes, "send"},
    {"torchmetrics", "Metric", "compute", kAgrees, "all_gather"},
    {"torchmetrics", "Metric", "sync", kMakes, "all_gather"},
    // accelerate
    {"accelerate", "Accelerator", "wait_for_everyone", kMakes, "barrier"},
    {"accelerate", "Accelerator", "gather", kAgrees, "all_gather"},
    {"accelerate", "Accelerator", "gather_for_metrics", kAgrees, "all_gather"},
    {"accelerate", "Accelerator", "reduce", kAgrees, "all_reduce"},
    {"accelerate", "Accelerator", "pad_across_processes", kMakes, "all_gather"},
    {"accelerate", "Accelerator", "check_trigger", kAgrees, "all_reduce"},
    {"accelerate", "Accelerator", "clip_grad_norm_", kMakes, ""},
    {"accelerate", "Accelerator", "get_state_dict", kMakes, "all_gather_into_tensor"},
    {"accelerate", "Accelerator", "save_state", kMakes, "barrier"},
    {"accelerate", "Accelerator", "backward", kMakes, "all_reduce"},
    {"accelerate", "Accelerator", "join_uneven_inputs", kShields, "all_reduce"},
    {"accelerate", "Accelerator", "accumulate", kHolds, ""},
    {"accelerate", "", "broadcast_object_list", kAgrees, "broadcast"},
    {"accelerate", "", "gather_object", kAgrees, "all_gather"},
    // lightning
    {"lightning", "Trainer", "fit", kLoops, ""},
    {"lightning", "Trainer", "validate", kLoops, ""},
    {"lightning", "Trainer", "test", kLoops, ""},
    {"lightning", "Trainer", "predict", kLoops, ""},
    {"lightning", "Trainer", "save_checkpoint", kMakes, "barrier"},
    {"lightning", "Strategy", "barrier", kMakes, "barrier"},
    {"lightning", "Strategy", "reduce_boolean_decision", kAgrees, "all_reduce"},
    {"lightning", "LightningModule", "all_gather", kAgrees, "all_gather"},
    {"lightning", "Fabric", "barrier", kMakes, "barrier"},
    {"lightning", "Fabric", "all_reduce", kAgrees, "all_reduce"},
    {"lightning", "Fabric", "all_gather", kAgrees, "all_gather"},
    {"lightning", "Fabric", "broadcast", kAgrees, "broadcast"},
    {"lightning", "Fabric", "backward", kMakes, "all_reduce"},
    {"lightning", "Fabric", "save", kMakes, "barrier"},
    {"lightning", "Fabric", "no_backward_sync", kHolds, ""},
    // transformers
    {"transformers", "Trainer", "train", kLoops, ""},
    {"transformers", "Trainer", "evaluate", kLoops, "all_gather"},
    {"transformers", "Trainer", "predict", kLoops, "all_gather"},
    {"transformers", "Trainer", "save_model", kMakes, "all_gather"},
    // deepspeed
    {"deepspeed", "DeepSpeedEngine", "backward", kMakes, "all_reduce"},
    {"deepspeed", "DeepSpeedEngine", "step", kMakes, "all_reduce"},
    {"deepspeed", "DeepSpeedEngine", "train_batch", kLoops, ""},
    {"deepspeed", "DeepSpeedEngine", "save_checkpoint", kMakes, "barrier"},
    {"deepspeed", "", "barrier", kMakes, "barrier"},
    {"deepspeed", "", "all_reduce", kAgrees, "all_reduce"},
    {"deepspeed", "zero.GatheredParameters", "", kMakes, "all_gather"},
    {"mpi4py", "Comm", "allreduce", kAgrees, "all_reduce"},
    {"mpi4py", "Comm", "Allreduce", kAgrees, "all_reduce"},
    {"mpi4py", "Comm", "bcast", kAgrees, "broadcast"},
    {"mpi4py", "Comm", "Bcast", kAgrees, "broadcast"},
    {"mpi4py", "Comm", "allgather", kAgrees, "all_gather"},
});

constexpr auto kData = Source::kData;
constexpr auto kSame = Source::kUniform;

// module, class, method, argument without self, what it is
constexpr auto kHooks = std::to_array<HookRow>({
    {"lightning", "LightningModule", "training_step", 0, kData},
    {"lightning", "LightningModule", "training_step", 1, kSame},
    {"lightning", "LightningModule", "validation_step", 0, kData},
    {"lightning", "LightningModule", "validation_step", 1, kSame},
    {"lightning", "LightningModule", "test_step", 0, kData},
    {"lightning", "LightningModule", "test_step", 1, kSame},
    {"lightning", "LightningModule", "on_train_batch_end", 0, kData},
    {"lightning", "LightningModule", "on_train_batch_end", 1, kData},
    {"lightning", "LightningModule", "on_train_batch_end", 2, kSame},
    {"lightning", "Callback", "on_train_batch_end", 2, kData},
    {"lightning", "Callback", "on_train_batch_end", 3, kData},
    {"lightning", "Callback", "on_train_batch_end", 4, kSame},
    {"transformers", "Trainer", "compute_loss", 1, kData},
    {"transformers", "Trainer", "training_step", 1, kData},
    {"transformers", "TrainerCallback", "on_evaluate", 3, kData},
    {"torch.nn", "Module", "forward", 0, kData},
    {"torch.utils.data", "Dataset", "__getitem__", 0, kData},
});

// module, call, keyword of the function, its position, whether the rank comes first
constexpr auto kRuns = std::to_array<RunsRow>({
    {"torch.multiprocessing", "spawn", "fn", 0, true},
    {"torch.multiprocessing", "start_processes", "fn", 0, true},
    {"torch_xla", "spawn", "fn", 0, true},
    {"torch.multiprocessing", "Process", "target", 1, false},
    {"multiprocessing", "Process", "target", 1, false},
    {"threading", "Thread", "target", 1, false},
    {"accelerate", "notebook_launcher", "function", 0, false},
});

// module, call, position of the function, what makes it run, alone
constexpr auto kHandlers = std::to_array<HandlerRow>({
    {"signal", "signal", 1, Source::kSignal, false},
    {"asyncio", "add_signal_handler", 1, Source::kSignal, true},
    {"threading", "Timer", 1, Source::kClock, false},
});

// module, call, whether it draws
constexpr auto kOrders = std::to_array<OrderRow>({
    {"os", "listdir", false},
    {"os", "scandir", false},
    {"os", "walk", false},
    {"glob", "glob", false},
    {"glob", "iglob", false},
    {"random", "sample", true},
    {"numpy.random", "permutation", true},
    {"torch", "randperm", true},
});

// module, decorator or wrapper; `alone`: no other library has an attribute of that name
struct LetsInRow {
  std::string_view module;
  std::string_view name;
};
constexpr auto kLetsIn = std::to_array<LetsInRow>({
    {"lightning", "rank_zero_only"},
    {"lightning", "rank_zero_experiment"},
    {"lightning_utilities", "rank_zero_only"},
    {"accelerate", "on_main_process"},
    {"accelerate", "on_local_main_process"},
    {"accelerate", "on_last_process"},
    {"accelerate", "on_process"},
    {"accelerate", "on_local_process"},
    {"ignite", "one_rank_only"},
});

struct LogRow {
  std::string_view name;
  LogCall does = LogCall::kOther;
};
constexpr auto kLog = std::to_array<LogRow>({
    {"debug", LogCall::kWrites},
    {"info", LogCall::kWrites},
    {"warning", LogCall::kWrites},
    {"error", LogCall::kWrites},
    {"critical", LogCall::kWrites},
    {"exception", LogCall::kWrites},
    {"log", LogCall::kWrites},
    {"setLevel", LogCall::kSets},
    {"addHandler", LogCall::kSets},
    {"addFilter", LogCall::kSets},
    {"disable", LogCall::kSets},
    {"basicConfig", LogCall::kSets},
    {"filter", LogCall::kHook},
    {"emit", LogCall::kHook},
    {"format", LogCall::kHook},
    {"handle", LogCall::kHook},
});

bool is_in(const CallRow& row, std::string_view qualified) {
  return lies_in(qualified, row.module);
}

}  // namespace

LogCall log_call(std::string_view method) {
  const auto found =
      std::find_if(kLog.begin(), kLog.end(), [&](const LogRow& row) { return row.name == method; });
  return found == kLog.end() ? LogCall::kOther : found->does;
}

std::span<const HookRow> hooks() {
  return kHooks;
}

const RunsRow* runs_function(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kRuns.begin(), kRuns.end(), [&](const RunsRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kRuns.end() ? nullptr : &*found;
}

const HandlerRow* handler_of(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kHandlers.begin(), kHandlers.end(), [&](const HandlerRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kHandlers.end() ? nullptr : &*found;
}

const HandlerRow* handler_of_attribute(std::string_view attribute) {
  const auto found = std::find_if(kHandlers.begin(), kHandlers.end(), [&](const HandlerRow& row) {
    return row.alone && row.name == attribute;
  });
  return found == kHandlers.end() ? nullptr : &*found;
}

const OrderRow* order_of_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kOrders.begin(), kOrders.end(), [&](const OrderRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kOrders.end() ? nullptr : &*found;
}

const CallRow* call_of_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const CallRow& row) {
    const bool itself = row.name.empty() && qualified.ends_with(row.owner);
    return is_in(row, qualified) && (itself || (row.owner.empty() && row.name == last));
  });
  return found == kRows.end() ? nullptr : &*found;
}

const CallRow* call_of_member(std::string_view qualified_class, std::string_view method) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const CallRow& row) {
    return row.name == method && !row.owner.empty() && is_in(row, qualified_class) &&
           qualified_class.ends_with("." + std::string(row.owner));
  });
  return found == kRows.end() ? nullptr : &*found;
}

const CallRow* call_of_attribute(std::string_view method) {
  // Of these names Python and its common libraries have calls of their own.
  constexpr auto kCommon = std::to_array<std::string_view>(
      {"reduce",  "gather",     "save",    "load",     "step",      "sync",     "compute",
       "join",    "test",       "fit",     "train",    "predict",   "evaluate", "backward",
       "forward", "state_dict", "barrier", "validate", "broadcast", "unshard",  "scatter"});
  if (std::find(kCommon.begin(), kCommon.end(), method) != kCommon.end()) {
    return nullptr;
  }
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const CallRow& row) {
    return !row.name.empty() && row.name == method;
  });
  return found == kRows.end() ? nullptr : &*found;
}

const CallRow* call_of_context(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const CallRow& row) {
    const bool context = row.does == kShields || row.does == kHolds || row.does == kFrees;
    return context && (row.name.empty() ? row.owner : row.name) == name;
  });
  return found == kRows.end() ? nullptr : &*found;
}

bool is_ddp(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1) == "DistributedDataParallel" &&
         (qualified.find('.') == qualified.npos || lies_in(qualified, "torch"));
}

bool broadcasts(std::string_view name) {
  return std::any_of(kRows.begin(), kRows.end(), [&](const CallRow& row) {
    return row.collective == "broadcast" && row.name == name && name != "forward";
  });
}

bool calls_back_as_often_as_it_likes(std::string_view file) {
  constexpr auto kFiles = std::to_array<std::string_view>(
      {"/torch/optim/lbfgs.py", "/scipy/optimize/", "/tenacity/", "/backoff/", "/retrying.py"});
  return std::any_of(kFiles.begin(), kFiles.end(), [file](std::string_view part) {
    return file.find(part) != std::string_view::npos;
  });
}

bool lets_ranks_in(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  return std::any_of(kLetsIn.begin(), kLetsIn.end(), [&](const LetsInRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
}

bool lets_ranks_in_by_attribute(std::string_view attribute) {
  return std::any_of(kLetsIn.begin(), kLetsIn.end(),
                     [&](const LetsInRow& row) { return row.name == attribute; });
}

}  // namespace ddpdoctor::program
