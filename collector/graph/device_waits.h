// SPDX-License-Identifier: Apache-2.0
// A rank with a GPU does not sleep while it waits: it spins in the driver, in state R, and its
// innermost frames differ between snapshots. Frames above the driver show where it is.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// A function of CUDA, ROCm, another vendor's runtime, NCCL or the kernel drivers below them.
bool is_driver_frame(const stacks::Frame& frame);

/// The frames outside of everything that varies while a host waits for its device: without driver
/// frames and without innermost frames that have no symbol.
std::span<const stacks::Frame> above_driver(std::span<const stacks::Frame> frames);

/// True if the frames above the driver are equal.
bool same_above_driver(std::span<const stacks::Frame> a, std::span<const stacks::Frame> b);

/// The environment, threads or stack show that the process computes on a GPU.
bool is_on_gpu(const model::JobModel& job, const model::Process& process);

/// Inside a function that returns only after the device has caught up: a native one or one of
/// torch's in Python. `frames`: those called by the user's innermost line.
bool waits_for_device(std::span<const stacks::Frame> frames);

/// The innermost frame outside libc is in a driver's library: the call returns when the device has
/// caught up, whatever function was called.
bool is_inside_driver(std::span<const stacks::Frame> frames);

/// cudaFree, cudaMalloc and similar calls, which wait for the kernels of every stream and not for
/// one call.
bool waits_for_all_of_device(std::span<const stacks::Frame> frames);

/// Inside autograd's backward pass.
bool is_in_backward(std::span<const stacks::Frame> frames);

/// The innermost Python line reads a value from the device (`loss.item()`, `float(loss)`) and calls
/// nothing that has a Python frame.
bool reads_device_value(const model::JobModel& job, const model::Thread& thread);

/// "gloo" or "nccl", from the native frames of a call; empty = unknown.
std::string_view backend_in(std::span<const stacks::Frame> frames);

/// What backward's own thread does while the main thread waits for that thread: a collective, an
/// operation of the reducer (kDdpBackward), or other Python code, such as a hook or a recomputed
/// forward (kUnknown).
struct CallInBackward {
  Activity activity = Activity::kUnknown;
  const model::Thread* thread = nullptr;
};
std::optional<CallInBackward> call_in_backward(const model::Process& process);

/// If another rank shows that models are wrapped in DistributedDataParallel, a rank that stays in
/// backward on its GPU counts as waiting for a bucket.
void take_backward_for_ddps(const model::JobModel& job, std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
