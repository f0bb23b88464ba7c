// SPDX-License-Identifier: Apache-2.0
// Libraries whose own kernels wait for other ranks without NCCL: the names of their wrappers,
// symbols, kernels and timeouts. A table with one row each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct DeviceLibrary {
  std::string_view name;    // common name
  std::string_view python;  // part of the path of its wrappers
  std::string_view native;  // part of a symbol or of a module's path
  std::string_view kernel;  // part of its kernels' names
  std::string_view check;   // fix if all ranks are in it; the first word is a verb
};

/// The position of a thread in such a library: the wrapper's function and its frame.
struct InLibrary {
  const DeviceLibrary* library = nullptr;
  std::string function;                 // "internode_dispatch"
  const model::Frame* frame = nullptr;  // frame of the wrapper
};

/// The innermost wrapper among these frames; absent if it has called torch.distributed or user code
/// in turn.
std::optional<InLibrary> library_in(std::span<const model::Frame> frames);

/// The library of a kernel; nullptr for NCCL's and for compute kernels.
const DeviceLibrary* library_of_kernel(std::string_view kernel);

/// A timeout reported by such a kernel or its host: the waiting rank, and the awaited one if it is
/// named.
struct DeviceTimeout {
  const DeviceLibrary* library = nullptr;
  std::optional<model::Rank> waiting;
  std::optional<model::Rank> missing;
  std::string line;
};

std::vector<DeviceTimeout> device_timeouts(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
