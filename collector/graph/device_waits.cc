// SPDX-License-Identifier: Apache-2.0
// Names from CUDA 11 to 13, ROCm 6 and 7, Level Zero 1.x, oneAPI 2023 to 2026, CANN 7 and 8, NCCL
// 2.18 to 2.32 and torch 2.0 to 2.14.
#include "collector/graph/device_waits.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "collector/graph/activity_rules.h"
#include "collector/graph/blocked_call.h"
#include "collector/graph/launched_call.h"
#include "collector/model/accelerators.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::graph {
namespace {

using std::string_view;
using Frames = std::span<const stacks::Frame>;

bool is_native(const stacks::Frame& frame) {
  return frame.language == stacks::Language::kNative;
}

/// "", "??", "0x7f3c…": an address without a symbol.
bool has_no_symbol(const stacks::Frame& frame) {
  return is_native(frame) &&
         (frame.function.empty() || frame.function.starts_with('?') ||
          frame.function.starts_with("0x") || frame.function.starts_with("<unknown"));
}

/// `cuStreamSynchronize`, but not a user's `customise`.
bool is_of_cuda_driver(string_view function) {
  return function.size() > 2 && function.starts_with("cu") &&
         std::isupper(static_cast<unsigned char>(function[2])) != 0;
}

/// A Python function of torch that needs the device, with a part of its file name.
struct NeedsDevice {
  string_view function;  // empty = any
  string_view file;
};

constexpr std::array<NeedsDevice, 14> kNeedDevice = {{
    {.function = "synchronize", .file = "torch/cuda/"},
    {.function = "synchronize", .file = "torch/accelerator/"},
    {.function = "synchronize", .file = "torch/xpu/"},
    {.function = "synchronize", .file = "torch/mtia/"},
    {.function = "synchronize", .file = "torch_npu/npu/"},
    {.function = "synchronize", .file = "torch_musa/core/"},
    {.function = "synchronize", .file = "torch_mlu/mlu/"},
    {.function = "synchronize", .file = "habana_frameworks/torch/hpu/"},
    {.function = "synchronize", .file = "intel_extension_for_pytorch/xpu/"},
    {.function = "empty_cache", .file = "torch/cuda/"},
    {.function = "to_item", .file = "lightning/fabric/utilities/apply_func.py"},
    {.function = "", .file = "torch/amp/grad_scaler.py"},
    {.function = "", .file = "torch/cuda/amp/grad_scaler.py"},
    {.function = "", .file = "torch/nn/utils/clip_grad.py"},
}};

/// Functions of torch that read a value from the device when the tensor is on one.
constexpr std::array<NeedsDevice, 5> kReadDevice = {{
    {.function = "", .file = "torch/_tensor_str.py"},
    {.function = "__format__", .file = "torch/_tensor.py"},
    {.function = "__array__", .file = "torch/_tensor.py"},
    {.function = "__contains__", .file = "torch/_tensor.py"},
    {.function = "_tensor_to_object", .file = "torch/distributed/distributed_c10d.py"},
}};

template <std::size_t N>
bool is_one_of(const std::array<NeedsDevice, N>& table, const stacks::Frame& frame) {
  const string_view name = plain_name(frame.function);
  return std::any_of(table.begin(), table.end(), [&](const NeedsDevice& one) {
    return base::contains(frame.file, one.file) && (one.function.empty() || name == one.function);
  });
}

bool is_string(string_view argument) {
  return argument.find_first_of("\"'") != string_view::npos;
}

/// `loss.item()`, `x.to("cpu")`, `float(loss)`, but not `float("inf")`.
bool reads_device(const program::Call& call) {
  constexpr std::array<string_view, 6> kMethods = {"item",  "cpu",         "tolist",
                                                   "numpy", "synchronize", "nonzero"};
  constexpr std::array<string_view, 3> kConversions = {"float", "int", "bool"};
  const string_view name = program::last_name(call.callee);
  if (base::contains(call.callee, ".")) {
    const bool to_host = name == "to" && !call.arguments.empty() && is_string(call.arguments[0]) &&
                         base::contains(call.arguments[0], "cpu");
    return to_host || std::find(kMethods.begin(), kMethods.end(), name) != kMethods.end();
  }
  return call.arguments.size() == 1 && !is_string(call.arguments[0]) &&
         std::find(kConversions.begin(), kConversions.end(), name) != kConversions.end();
}

/// `if x.any():`, `while loss.sum() > 1:`: a branch reads the result of a tensor method.
bool reads_truth(std::string_view statement, const std::vector<program::Call>& calls) {
  constexpr std::array<string_view, 12> kMethods = {"any",   "all",      "sum",   "max",
                                                    "min",   "mean",     "norm",  "isnan",
                                                    "isinf", "isfinite", "equal", "allclose"};
  constexpr std::array<string_view, 4> kTests = {"if ", "elif ", "while ", "assert "};
  return std::any_of(kTests.begin(), kTests.end(),
                     [statement](string_view word) { return statement.starts_with(word); }) &&
         std::any_of(calls.begin(), calls.end(), [&kMethods](const program::Call& call) {
           return base::contains(call.callee, ".") &&
                  std::find(kMethods.begin(), kMethods.end(), program::last_name(call.callee)) !=
                      kMethods.end();
         });
}

/// The program's known source selects the GPU backend.
bool asks_for_nccl(const model::JobModel& job) {
  const auto asks = [](const program::Call& call) {
    if (program::last_name(call.callee) != "init_process_group") {
      return false;
    }
    string_view backend = program::keyword_argument(call, "backend");
    if (backend.empty() && !call.arguments.empty()) {
      backend = call.arguments.front();
    }
    return is_string(backend) && base::contains(backend, "nccl");
  };
  for (const auto& [file, text] : job.sources) {
    if (!model::is_user_file(file)) {
      continue;
    }
    for (const auto& [line, words] : text) {
      if (!base::contains(words, "nccl")) {  // most lines need no parser
        continue;
      }
      const std::string statement = program::statement_at(text, line);
      const std::vector<program::Call> calls = program::calls_in(statement);
      if (std::any_of(calls.begin(), calls.end(), asks)) {
        return true;
      }
    }
  }
  return false;
}

/// A thread that Python did not start, so that its outermost Python function was called by a
/// library: dumps without native frames show autograd's threads so while they run a hook.
bool is_called_from_outside(const model::Thread& thread) {
  const auto outermost = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                      [](const stacks::Frame& frame) { return !is_native(frame); });
  return std::none_of(thread.frames.begin(), thread.frames.end(), is_native) &&
         outermost != thread.frames.rend() && plain_name(outermost->function) != "_bootstrap" &&
         outermost->function != "<module>";
}

/// A thread of autograd's engine, for which backward() waits. Python calls a thread that C++
/// started "Dummy-3".
bool is_of_autograd(const model::Thread& thread) {
  const bool unnamed = thread.name.empty() || thread.name.starts_with("Dummy-");
  return thread.name.starts_with("pt_autograd") ||
         model::has_native_frame(thread, "torch::autograd::Engine::thread_main") ||
         (unnamed && is_called_from_outside(thread));
}

bool is_in_torch_distributed(const stacks::Frame& frame) {
  return frame.language == stacks::Language::kPython &&
         base::contains(frame.file, "torch/distributed/distributed_c10d.py");
}

}  // namespace

bool is_driver_frame(const stacks::Frame& frame) {
  constexpr std::array<string_view, 6> kPrefixes = {"cuda", "hip", "hsa_", "nccl", "ibv_", "rdma_"};
  constexpr std::array<string_view, 2> kWaits = {"WorkNCCL::", "c10d::ProcessGroupNCCL::"};
  if (!is_native(frame)) {
    return false;
  }
  const string_view function = frame.function;
  const bool named = std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](string_view prefix) {
    return function.starts_with(prefix) && function.size() > prefix.size() &&
           (prefix.ends_with('_') ||
            std::isupper(static_cast<unsigned char>(function[prefix.size()])) != 0);
  });
  return named || is_of_cuda_driver(function) || base::contains_any(function, kWaits) ||
         model::device_library_of(frame) != nullptr;
}

Frames above_driver(Frames frames) {
  std::size_t from = 0;
  while (from < frames.size() && has_no_symbol(frames[from])) {
    ++from;
  }
  for (std::size_t i = from; i < frames.size() && is_native(frames[i]); ++i) {
    if (is_driver_frame(frames[i])) {
      from = i + 1;
    }
  }
  return frames.subspan(from);
}

bool same_above_driver(Frames a, Frames b) {
  const Frames x = above_driver(a);
  const Frames y = above_driver(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const stacks::Frame& one, const stacks::Frame& other) {
                      return one.function == other.function && one.line == other.line &&
                             one.file == other.file;
                    });
}

bool is_on_gpu(const model::JobModel& job, const model::Process& process) {
  const auto names_gpu = [](const auto& variable) {
    return variable.first.starts_with("NCCL_") || variable.first.starts_with("TORCH_NCCL_") ||
           (variable.first == "CUDA_VISIBLE_DEVICES" && !variable.second.empty());
  };
  const auto of_gpu = [](const model::Thread& thread) {
    return thread.name.starts_with("pt_nccl") || thread.name.starts_with("NCCL ") ||
           thread.name.starts_with("cuda-EvtHandlr") ||
           std::any_of(thread.frames.begin(), thread.frames.end(), is_driver_frame);
  };
  return std::any_of(job.groups.begin(), job.groups.end(), model::is_of_nccl) ||
         std::any_of(process.environment.begin(), process.environment.end(), names_gpu) ||
         std::any_of(process.threads.begin(), process.threads.end(), of_gpu) ||
         std::any_of(job.facts.begin(), job.facts.end(),
                     [&process](const model::Fact& fact) {
                       return fact.kind == "gpu" && fact.rank == process.rank;
                     }) ||
         asks_for_nccl(job);
}

bool waits_for_all_of_device(Frames frames) {
  constexpr std::array<string_view, 10> kCalls = {
      "cudaFree",   "cudaHostFree", "cudaHostUnregister", "cudaMalloc",     "cuMemFree",
      "cuMemAlloc", "hipFree",      "hipMalloc",          "cuModuleUnload", "cuCtxDestroy"};
  const auto python = std::find_if_not(frames.begin(), frames.end(), is_native);
  return std::any_of(frames.begin(), python, [&kCalls](const stacks::Frame& frame) {
    return base::contains_any(frame.function, kCalls);
  });
}

bool waits_for_device(Frames frames) {
  constexpr std::array<string_view, 26> kWaits = {
      "StreamSynchronize", "EventSynchronize", "DeviceSynchronize", "CtxSynchronize",
      "_local_scalar_dense", "cudaMemcpy", "cuMemcpyDtoH", "cuMemcpyHtoD", "hipMemcpy",
      "StreamWaitValue",
      // Level Zero, Unified Runtime (before it, PI) and SYCL
      "zeEventHostSynchronize", "zeFenceHostSynchronize", "zeCommandQueueSynchronize",
      "zeCommandListHostSynchronize", "urEventWait", "urQueueFinish", "piEventsWait",
      "piQueueFinish", "sycl::_V1::queue::wait", "sycl::_V1::event::wait",
      // CANN, MUSA, Neuware
      "aclrtSynchronize", "aclrtMemcpy", "musaMemcpy", "cnrtQueueSync", "cnrtMemcpy",
      "cnrtNotifierWait"};
  if (waits_for_all_of_device(frames)) {
    return true;
  }
  for (const stacks::Frame& frame : frames) {
    if (is_native(frame)) {
      if (base::contains_any(frame.function, kWaits)) {
        return true;
      }
      continue;
    }
    return is_one_of(kNeedDevice, frame);
  }
  return false;
}

bool is_inside_driver(Frames frames) {
  // What a driver that spins calls before it reads its device again.
  constexpr std::array<string_view, 4> kBetween = {"sched_yield", "ioctl", "poll", "clock_gettime"};
  const auto inner = std::find_if_not(frames.begin(), frames.end(), [&](const auto& frame) {
    return is_native(frame) &&
           (base::contains_any(frame.function, kBetween) || base::contains(frame.module, "vdso"));
  });
  return inner != frames.end() && has_no_symbol(*inner) && model::is_in_driver_or_runtime(*inner);
}

bool reads_device_value(const model::JobModel& job, const model::Thread& thread) {
  const stacks::Frame* python = model::innermost_python(thread);
  if (python != nullptr && is_one_of(kReadDevice, *python)) {
    return true;
  }
  const auto source = python == nullptr ? job.sources.end() : job.sources.find(python->file);
  if (source == job.sources.end()) {
    return false;
  }
  const std::string statement = program::statement_at(source->second, python->line);
  const std::vector<program::Call> calls = program::calls_in(statement);
  return std::any_of(calls.begin(), calls.end(), reads_device) ||
         reads_truth(base::trim(statement), calls);
}

bool is_in_backward(Frames frames) {
  return std::any_of(frames.begin(), frames.end(), [](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kPython &&
           (plain_name(frame.function) == "_engine_run_backward" ||
            (plain_name(frame.function) == "backward" &&
             (frame.file.find("torch/_tensor.py") != std::string::npos ||
              frame.file.find("torch/autograd/") != std::string::npos)));
  });
}

string_view backend_in(Frames frames) {
  for (const stacks::Frame& frame : frames) {
    if (!is_native(frame)) {
      continue;
    }
    const string_view function = frame.function;
    if (function.starts_with("gloo::") || base::contains(function, "ProcessGroupGloo") ||
        base::contains(function, " gloo::")) {
      return "gloo";
    }
    if (function.starts_with("nccl") || base::contains(function, "ProcessGroupNCCL") ||
        base::contains(function, "WorkNCCL")) {
      return "nccl";
    }
  }
  return {};
}

std::optional<CallInBackward> call_in_backward(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  std::optional<CallInBackward> python;
  for (const model::Thread& thread : process.threads) {
    if (&thread == main || !is_of_autograd(thread)) {
      continue;
    }
    if (model::has_native_frame(thread, "c10d::Reducer")) {
      return CallInBackward{.activity = Activity::kDdpBackward, .thread = &thread};
    }
    if (model::has_native_frame(thread, "c10d::") ||
        std::any_of(thread.frames.begin(), thread.frames.end(), is_in_torch_distributed)) {
      return CallInBackward{.activity = Activity::kCollective, .thread = &thread};
    }
    if (!python && model::innermost_python(thread) != nullptr) {
      python = CallInBackward{.thread = &thread};
    }
  }
  return python;
}

void take_backward_for_ddps(const model::JobModel& job, std::vector<Standing>& standings) {
  const bool ddp =
      std::any_of(standings.begin(), standings.end(),
                  [](const Standing& one) {
                    return one.activity == Activity::kDdpForward ||
                           one.activity == Activity::kDdpBackward;
                  }) ||
      (std::any_of(standings.begin(), standings.end(),
                   [](const Standing& one) { return one.activity == Activity::kGpu; }) &&
       wraps_in_ddp(job));
  for (Standing& one : standings) {
    if (ddp && one.activity == Activity::kGpu && one.thread != nullptr && !one.moved &&
        !one.on_cpu && is_in_backward(one.thread->frames)) {
      one.activity = Activity::kDdpBackward;
      one.call = BlockedCall{.operation = "all_reduce", .group = world_group(job)};
    }
  }
}

}  // namespace ddpdoctor::graph
