// SPDX-License-Identifier: Apache-2.0
// Libraries whose own kernels wait for other ranks without NCCL: how their wrappers, symbols,
// kernels and timeouts are spelled. A table, one row each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct DeviceLibrary {
  std::string_view name;    // as people call it
  std::string_view python;  // piece of the path of its wrappers
  std::string_view native;  // piece of a symbol or of a module's path
  std::string_view kernel;  // piece of its kernels' names
  std::string_view check;   // what to do when all ranks are in it; first word is a verb
};

/// Where a thread is in such a library: the function of its wrapper, and the caller's view of it.
struct InLibrary {
  const DeviceLibrary* library = nullptr;
  std::string function;                 // "internode_dispatch"
  const model::Frame* frame = nullptr;  // the wrapper's
};

/// The innermost wrapper of these frames; absent also where torch.distributed or the user's code
/// was called from it since.
std::optional<InLibrary> library_in(std::span<const model::Frame> frames);

/// The library that a kernel is of; nullptr for NCCL's and for computing ones.
const DeviceLibrary* library_of_kernel(std::string_view kernel);

/// A timeout that such a kernel, or its host, wrote: who waited, and for whom where it says so.
struct DeviceTimeout {
  const DeviceLibrary* library = nullptr;
  std::optional<model::Rank> waiting;
  std::optional<model::Rank> missing;
  std::string line;
};

std::vector<DeviceTimeout> device_timeouts(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
