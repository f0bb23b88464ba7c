// SPDX-License-Identifier: Apache-2.0
// Where values come from. From the documentation of Python, torch 2.13, lightning 2.5, accelerate
// 1.x, transformers 4.5x, deepspeed 0.16, mpi4py 4, torch_xla 2.x.
#include <algorithm>
#include <array>

#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::program {
namespace {

constexpr auto kRank = Source::kRank;
constexpr auto kSameSource = Source::kUniform;
constexpr auto kDataSource = Source::kData;
constexpr auto kClock = Source::kClock;
constexpr auto kRandom = Source::kRandom;
constexpr auto kFiles = Source::kFiles;
constexpr auto kLength = Source::kLength;
constexpr auto kQueue = Source::kQueue;
constexpr auto kCache = Source::kCache;
constexpr auto kSignal = Source::kSignal;

// module, owner, name, source, number, alone
constexpr auto kSourceRows = std::to_array<SourceRow>({
    {"torch.distributed", "", "get_rank", kRank, true, true},
    {"torch.distributed", "", "get_node_local_rank", kRank, true, true},
    {"torch.distributed", "", "get_group_rank", kRank, true, true},
    {"torch.distributed", "ProcessGroup", "rank", kRank, true, false},
    {"torch.distributed", "DeviceMesh", "get_rank", kRank, true, false},
    {"torch.distributed", "DeviceMesh", "get_local_rank", kRank, true, true},
    {"torch.distributed", "DeviceMesh", "get_coordinate", kRank, false, true},
    {"torch.distributed", "", "get_world_size", kSameSource, false, true},
    {"torch.distributed", "", "is_initialized", kSameSource, false, true},
    {"torch.distributed", "", "is_available", kSameSource, false, false},
    {"torch.distributed", "", "is_torchelastic_launched", kSameSource, false, true},
    {"torch.distributed", "", "is_nccl_available", kSameSource, false, true},
    {"torch.distributed", "", "get_backend", kSameSource, false, true},
    {"torch.distributed", "PipelineStage", "is_first", kRank, false, false},
    {"torch.distributed", "PipelineStage", "is_last", kRank, false, false},
    {"torch.distributed", "PipelineStage", "stage_index", kRank, false, false},
    {"torch.cuda", "", "current_device", kRank, true, false},
    {"torch.cuda", "", "is_available", kSameSource, false, false},
    {"torch.cuda", "", "device_count", kSameSource, false, true},
    {"torch.cuda", "", "memory_allocated", kDataSource, false, true},
    {"torch.cuda", "", "memory_reserved", kDataSource, false, true},
    {"torch.cuda", "", "mem_get_info", kDataSource, false, true},
    {"torch.backends", "", "is_available", kSameSource, false, false},
    {"accelerate", "Accelerator", "is_main_process", kRank, false, true},
    {"accelerate", "Accelerator", "is_local_main_process", kRank, false, true},
    {"accelerate", "Accelerator", "is_last_process", kRank, false, true},
    {"accelerate", "Accelerator", "process_index", kRank, true, true},
    {"accelerate", "Accelerator", "local_process_index", kRank, true, true},
    {"accelerate", "Accelerator", "num_processes", kSameSource, false, true},
    {"accelerate", "Accelerator", "sync_gradients", kSameSource, false, true},
    {"accelerate", "PartialState", "is_main_process", kRank, false, false},
    {"accelerate", "PartialState", "is_local_main_process", kRank, false, false},
    {"accelerate", "PartialState", "is_last_process", kRank, false, false},
    {"accelerate", "PartialState", "process_index", kRank, true, false},
    {"accelerate", "PartialState", "num_processes", kSameSource, false, false},
    {"accelerate", "AcceleratorState", "is_main_process", kRank, false, false},
    {"accelerate", "AcceleratorState", "process_index", kRank, true, false},
    {"lightning", "Trainer", "is_global_zero", kRank, false, true},
    {"lightning", "Trainer", "global_rank", kRank, true, true},
    {"lightning", "Trainer", "local_rank", kRank, true, false},
    {"lightning", "Trainer", "node_rank", kRank, true, true},
    {"lightning", "Trainer", "is_last_batch", kLength, false, false},
    {"lightning", "Trainer", "current_epoch", kSameSource, false, false},
    {"lightning", "Trainer", "global_step", kSameSource, false, false},
    {"lightning", "Trainer", "sanity_checking", kSameSource, false, true},
    {"lightning", "Trainer", "world_size", kSameSource, false, false},
    {"lightning", "LightningModule", "global_rank", kRank, true, false},
    {"lightning", "LightningModule", "local_rank", kRank, true, false},
    {"lightning", "LightningModule", "current_epoch", kSameSource, false, false},
    {"lightning", "LightningModule", "global_step", kSameSource, false, false},
    {"lightning", "Fabric", "is_global_zero", kRank, false, false},
    {"lightning", "Fabric", "global_rank", kRank, true, false},
    {"lightning", "Fabric", "local_rank", kRank, true, false},
    {"lightning", "Fabric", "world_size", kSameSource, false, false},
    {"transformers", "TrainerState", "is_world_process_zero", kRank, false, true},
    {"transformers", "TrainerState", "is_local_process_zero", kRank, false, true},
    {"transformers", "TrainerState", "global_step", kSameSource, false, false},
    {"transformers", "TrainerState", "epoch", kSameSource, false, false},
    {"transformers", "Trainer", "is_world_process_zero", kRank, false, true},
    {"transformers", "Trainer", "is_local_process_zero", kRank, false, true},
    {"transformers", "TrainingArguments", "process_index", kRank, true, false},
    {"transformers", "TrainingArguments", "local_process_index", kRank, true, false},
    {"transformers", "TrainingArguments", "local_rank", kRank, true, false},
    {"transformers", "TrainingArguments", "should_save", kRank, false, false},
    {"transformers", "TrainingArguments", "should_log", kRank, false, false},
    {"transformers", "TrainingArguments", "world_size", kSameSource, false, false},
    {"deepspeed", "", "get_rank", kRank, true, false},
    {"deepspeed", "", "get_local_rank", kRank, true, false},
    {"deepspeed", "DeepSpeedEngine", "global_rank", kRank, true, false},
    {"deepspeed", "DeepSpeedEngine", "local_rank", kRank, true, false},
    {"deepspeed", "DeepSpeedEngine", "is_gradient_accumulation_boundary", kSameSource, false, true},
    {"megatron", "", "get_data_parallel_rank", kRank, true, true},
    {"megatron", "", "get_tensor_model_parallel_rank", kRank, true, true},
    {"megatron", "", "get_pipeline_model_parallel_rank", kRank, true, true},
    {"megatron", "", "is_pipeline_first_stage", kRank, false, true},
    {"megatron", "", "is_pipeline_last_stage", kRank, false, true},
    {"torch_xla", "", "is_master_ordinal", kRank, false, true},
    {"torch_xla", "", "get_ordinal", kRank, true, true},
    {"torch_xla", "", "get_local_ordinal", kRank, true, true},
    {"ignite", "", "get_rank", kRank, true, false},
    {"ignite", "", "get_local_rank", kRank, true, false},
    {"horovod", "", "rank", kRank, true, false},
    {"horovod", "", "local_rank", kRank, true, false},
    {"horovod", "", "size", kSameSource, false, false},
    {"mpi4py", "Comm", "Get_rank", kRank, true, true},
    {"mpi4py", "Comm", "rank", kRank, true, false},
    {"mpi4py", "Comm", "Get_size", kSameSource, false, true},
    {"mpi4py", "MPI.COMM_WORLD", "rank", kRank, true, false},
    {"mpi4py", "MPI.COMM_WORLD", "Get_rank", kRank, true, false},
    {"mpi4py", "MPI.COMM_WORLD", "size", kSameSource, false, false},
    {"mpi4py", "MPI.COMM_WORLD", "Get_size", kSameSource, false, false},
    {"time", "", "time", kClock, false, false},
    {"time", "", "monotonic", kClock, false, false},
    {"time", "", "perf_counter", kClock, false, true},
    {"time", "", "process_time", kClock, false, true},
    {"time", "", "time_ns", kClock, false, true},
    {"time", "", "monotonic_ns", kClock, false, true},
    {"time", "", "perf_counter_ns", kClock, false, true},
    {"datetime", "", "now", kClock, false, false},
    {"datetime", "", "utcnow", kClock, false, true},
    {"datetime", "", "today", kClock, false, false},
    {"random", "", "", kRandom, false, false},
    {"secrets", "", "", kRandom, false, false},
    {"uuid", "", "", kRandom, false, false},
    {"numpy.random", "", "", kRandom, false, false},
    {"os", "", "urandom", kRandom, false, true},
    {"torch", "", "rand", kRandom, false, false},
    {"torch", "", "randn", kRandom, false, true},
    {"torch", "", "randint", kRandom, false, false},
    {"torch", "", "randperm", kRandom, false, true},
    {"torch", "", "bernoulli", kRandom, false, false},
    {"torch", "", "rand_like", kRandom, false, true},
    {"torch", "", "randn_like", kRandom, false, true},
    {"os", "", "getpid", kRank, false, true},
    {"socket", "", "gethostname", kRank, false, true},
    {"os.path", "", "exists", kFiles, false, false},
    {"os.path", "", "isfile", kFiles, false, true},
    {"os.path", "", "isdir", kFiles, false, true},
    {"os.path", "", "islink", kFiles, false, true},
    {"os.path", "", "getsize", kFiles, false, true},
    {"os.path", "", "getmtime", kFiles, false, true},
    {"os", "", "listdir", kFiles, false, true},
    {"os", "", "scandir", kFiles, false, true},
    {"os", "", "stat", kFiles, false, false},
    {"os", "", "access", kFiles, false, false},
    {"os", "", "walk", kFiles, false, false},
    {"glob", "", "", kFiles, false, false},
    {"shutil", "", "disk_usage", kFiles, false, true},
    {"pathlib", "Path", "exists", kFiles, false, true},
    {"pathlib", "Path", "is_file", kFiles, false, true},
    {"pathlib", "Path", "is_dir", kFiles, false, true},
    {"pathlib", "Path", "stat", kFiles, false, false},
    {"pathlib", "Path", "iterdir", kFiles, false, true},
    {"pathlib", "Path", "glob", kFiles, false, false},
    {"pathlib", "Path", "read_text", kFiles, false, true},
    {"torch", "Tensor", "item", kDataSource, false, true},
    {"torch", "Tensor", "isnan", kDataSource, false, true},
    {"torch", "Tensor", "isinf", kDataSource, false, true},
    {"torch", "Tensor", "isfinite", kDataSource, false, true},
    {"torch", "Tensor", "any", kDataSource, false, true},
    {"torch", "Tensor", "all", kDataSource, false, true},
    {"torch", "Tensor", "sum", kDataSource, false, true},
    {"torch", "Tensor", "mean", kDataSource, false, true},
    {"torch", "Tensor", "norm", kDataSource, false, true},
    {"torch", "Tensor", "max", kDataSource, false, true},
    {"torch", "Tensor", "min", kDataSource, false, true},
    {"torch", "Tensor", "tolist", kDataSource, false, true},
    {"torch", "Tensor", "grad", kDataSource, false, true},
    {"torch.nn", "Module", "parameters", kSameSource, false, true},
    {"torch.nn", "Module", "named_parameters", kSameSource, false, true},
    {"torch.optim", "Optimizer", "param_groups", kSameSource, false, true},
    {"torch.utils.data", "DataLoader", "", kDataSource, false, false},
    {"torch.utils.data", "DistributedSampler", "", kDataSource, false, false},
    {"argparse", "ArgumentParser", "parse_args", kSameSource, false, true},
    {"argparse", "ArgumentParser", "parse_known_args", kSameSource, false, true},
    {"sys", "", "argv", kSameSource, false, false},
    {"sys", "", "version_info", kSameSource, false, false},
    {"sys", "", "platform", kSameSource, false, false},
    {"typing", "", "TYPE_CHECKING", kSameSource, false, false},
    {"omegaconf", "OmegaConf", "from_cli", kSameSource, false, true},
    {"signal", "", "sigpending", kSignal, false, true},
    {"signal", "", "sigtimedwait", kSignal, false, true},
    {"signal", "", "sigwait", kSignal, false, true},
    {"signal", "", "", kDataSource, false, false},
    {"lightning", "Trainer", "received_sigterm", kSignal, false, true},
    {"threading", "Event", "is_set", kDataSource, false, true},
    {"multiprocessing", "Event", "is_set", kDataSource, false, false},
    {"queue", "Queue", "get", kQueue, false, false},
    {"queue", "Queue", "get_nowait", kQueue, false, true},
    {"queue", "Queue", "empty", kQueue, false, false},
    {"queue", "Queue", "full", kQueue, false, false},
    {"queue", "Queue", "qsize", kQueue, false, true},
    {"queue", "PriorityQueue", "get", kQueue, false, false},
    {"queue", "PriorityQueue", "empty", kQueue, false, false},
    {"queue", "SimpleQueue", "get", kQueue, false, false},
    {"queue", "SimpleQueue", "empty", kQueue, false, false},
    {"multiprocessing", "Queue", "get", kQueue, false, false},
    {"multiprocessing", "Queue", "empty", kQueue, false, false},
    {"torch.multiprocessing", "Queue", "get", kQueue, false, false},
    {"torch.multiprocessing", "Queue", "empty", kQueue, false, false},
    {"asyncio", "Queue", "get", kQueue, false, false},
    {"asyncio", "Queue", "empty", kQueue, false, false},
    {"zmq", "Socket", "poll", kQueue, false, false},
    {"zmq", "Socket", "recv", kQueue, false, false},
    {"zmq", "Socket", "recv_pyobj", kQueue, false, true},
    {"ray.util.queue", "Queue", "get", kQueue, false, false},
    {"ray.util.queue", "Queue", "empty", kQueue, false, false},
    {"functools", "", "cache_info", kCache, false, true},
    {"diskcache", "Cache", "get", kCache, false, false},
    {"diskcache", "Cache", "", kCache, false, false},
    {"cachetools", "", "", kCache, false, false},
    {"joblib", "Memory", "", kCache, false, false},
    {"joblib", "", "check_call_in_cache", kCache, false, true},
    {"shelve", "", "open", kCache, false, false},
    {"huggingface_hub", "", "try_to_load_from_cache", kCache, false, true},
    {"huggingface_hub", "", "scan_cache_dir", kCache, false, true},
    {"torch.compiler", "", "load_cache_artifacts", kCache, false, true},
    {"torch._inductor", "FxGraphCache", "load", kCache, false, false},
    {"lmdb", "", "", kCache, false, false},
    {"redis", "", "", kCache, false, false},
    {"psutil", "", "", kDataSource, false, false},
});

constexpr auto kVariables = std::to_array<std::string_view>(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "ROLE_RANK", "SLURM_PROCID", "SLURM_LOCALID",
     "SLURM_NODEID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_RANK", "MPI_LOCALRANKID"});

// "lightning.pytorch" and "pytorch_lightning" are one library.
std::string_view library_name(std::string_view qualified) {
  const std::string_view root = qualified.substr(0, qualified.find('.'));
  return root == "pytorch_lightning" || root == "lightning_fabric" ? "lightning" : root;
}

}  // namespace

std::string_view name_of(Source source) {
  switch (source) {
    case Source::kUniform:
      return "nothing that differs between ranks";
    case Source::kEnvironment:
      return "an environment variable";
    case Source::kUnknown:
      return "something that the known source does not show";
    case Source::kLength:
      return "how much data the rank has";
    case Source::kData:
      return "the rank's own data";
    case Source::kException:
      return "an exception on the rank";
    case Source::kQueue:
      return "what the rank's own queue has received";
    case Source::kCache:
      return "what the rank's cache holds";
    case Source::kFiles:
      return "the rank's file system";
    case Source::kRandom:
      return "random numbers";
    case Source::kClock:
      return "the rank's clock";
    case Source::kSignal:
      return "whether a signal has reached the rank";
    case Source::kRank:
      return "the rank number";
  }
  return {};
}

bool is_own(Source source) {
  return source > Source::kUnknown && source != Source::kRank;
}

bool lies_in(std::string_view qualified, std::string_view module) {
  if (qualified.starts_with(module)) {
    return qualified.size() == module.size() || qualified[module.size()] == '.';
  }
  return module.find('.') == std::string_view::npos && library_name(qualified) == module;
}

const SourceRow* source_of_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);  // npos + 1 = 0
  const auto found =
      std::find_if(kSourceRows.begin(), kSourceRows.end(), [&](const SourceRow& row) {
        const bool whole_module = row.name.empty() && row.owner.empty();
        const bool class_itself = row.name.empty() && !row.owner.empty() && row.owner == last;
        const bool named = !row.name.empty() && row.owner.empty() && row.name == last;
        return (whole_module || class_itself || named) && lies_in(qualified, row.module);
      });
  return found == kSourceRows.end() ? nullptr : &*found;
}

const SourceRow* source_of_member(std::string_view qualified_class, std::string_view attribute) {
  const auto found =
      std::find_if(kSourceRows.begin(), kSourceRows.end(), [&](const SourceRow& row) {
        return row.name == attribute && !row.owner.empty() &&
               lies_in(qualified_class, row.module) &&
               (qualified_class.ends_with("." + std::string(row.owner)));
      });
  return found == kSourceRows.end() ? nullptr : &*found;
}

const SourceRow* source_of_attribute(std::string_view attribute) {
  const auto found =
      std::find_if(kSourceRows.begin(), kSourceRows.end(),
                   [&](const SourceRow& row) { return row.alone && row.name == attribute; });
  return found == kSourceRows.end() ? nullptr : &*found;
}

bool is_rank_variable(std::string_view name) {
  return std::find(kVariables.begin(), kVariables.end(), name) != kVariables.end();
}

}  // namespace ddpdoctor::program
