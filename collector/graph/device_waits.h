// SPDX-License-Identifier: Apache-2.0
// A rank with a GPU does not sleep while it waits: it spins in the driver, in state R, and its
// innermost frames differ from look to look. Where it is, is judged above the driver.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// A function of CUDA, ROCm, NCCL or of the kernel's drivers below them.
bool is_driver_frame(const stacks::Frame& frame);

/// The frames outside of everything that varies while a host waits for its device: without the
/// driver's, and without innermost ones that have no symbol.
std::span<const stacks::Frame> above_driver(std::span<const stacks::Frame> frames);

/// Equal above the driver.
bool same_above_driver(std::span<const stacks::Frame> a, std::span<const stacks::Frame> b);

/// Its environment, its threads or its stack say that the process computes on a GPU.
bool is_on_gpu(const model::JobModel& job, const model::Process& process);

/// In a function that returns only when the device has come so far: a native one, or one of
/// torch's in Python. `frames`: called by the user's innermost line.
bool waits_for_device(std::span<const stacks::Frame> frames);

/// The innermost frame outside of libc lies in the library of a driver: the host is let out of
/// there when its device has come far enough, whatever function it called.
bool is_inside_driver(std::span<const stacks::Frame> frames);

/// cudaFree, cudaMalloc and the like: these wait until the whole device is idle, for the kernels of
/// every stream and not for one call.
bool waits_for_all_of_device(std::span<const stacks::Frame> frames);

/// In the backward of autograd.
bool is_in_backward(std::span<const stacks::Frame> frames);

/// The innermost line of Python asks for a value of the device (`loss.item()`, `float(loss)`), and
/// nothing is called there that has a Python frame.
bool reads_device_value(const model::JobModel& job, const model::Thread& thread);

/// "gloo" or "nccl", as native frames of a call say; empty = unknown.
std::string_view backend_in(std::span<const stacks::Frame> frames);

/// The collective that backward's own thread is in, while the main thread waits for that thread.
/// An operation of the reducer has activity kDdpBackward.
struct CallInBackward {
  Activity activity = Activity::kUnknown;
  const model::Thread* thread = nullptr;
};
std::optional<CallInBackward> call_in_backward(const model::Process& process);

/// Where another rank shows that models are wrapped in DistributedDataParallel, a rank that stays
/// in backward on its GPU waits for a bucket.
void take_backward_for_ddps(const model::JobModel& job, std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
