// SPDX-License-Identifier: Apache-2.0
// CUDA 11 to 13, ROCm 5 to 7, oneAPI 2023 to 2026 (libpi_level_zero until 2024, then the adapters
// of Unified Runtime), CANN 7 and 8, Synapse 1.x, MUSA 2 to 4, Neuware 5, Neuron 2.
#include "collector/model/accelerators.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace ddpdoctor::model {
namespace {

using enum DevicePart;

constexpr DeviceLibraryFile kBelowTorch[] = {
    // NVIDIA
    {"libcuda.so", kDriver},
    {"libnvidia-", kDriver},
    {"libcudart", kRuntime},
    {"libcupti", kDriver},
    {"libnccl", kCollectives},
    // AMD
    {"libhsa-runtime", kDriver},
    {"libamdhip64", kRuntime},
    {"librccl", kCollectives},
    // Intel: Level Zero, Unified Runtime and SYCL, oneCCL
    {"libze_intel_gpu", kDriver},
    {"libze_loader", kDriver},
    {"libur_adapter_", kRuntime},
    {"libur_loader", kRuntime},
    {"libpi_level_zero", kRuntime},
    {"libsycl.so", kRuntime},
    {"libccl.so", kCollectives},
    // Ascend
    {"libascend_hal", kDriver},
    {"libascendcl", kRuntime},
    {"libhccl.so", kCollectives},
    // Gaudi
    {"libhl-thunk", kDriver},
    {"libSynapse", kRuntime},
    {"libhcl.so", kCollectives},
    // Moore Threads
    {"libmusa.so", kDriver},
    {"libsrv_um_MUSA", kDriver},
    {"libmusart", kRuntime},
    {"libmccl.so", kCollectives},
    // Cambricon
    {"libcndrv", kDriver},
    {"libcnrt", kRuntime},
    {"libcncl", kCollectives},
    // Neuron
    {"libnrt.so", kRuntime},
    // The network between devices
    {"librdmacm.so", kNetwork},
    {"libibverbs", kNetwork},
    {"libmlx5", kNetwork},
};

bool has_device_part(const Frame& frame, DevicePart part) {
  const DeviceLibraryFile* file = device_library_of(frame);
  return file != nullptr && file->part == part;
}

}  // namespace

const DeviceLibraryFile* device_library_of(const Frame& frame) {
  if (frame.language != Language::kNative || frame.module.empty()) {
    return nullptr;
  }
  const auto* const found = std::find_if(std::begin(kBelowTorch), std::end(kBelowTorch),
                                         [&frame](const DeviceLibraryFile& file) {
                                           return base::contains(frame.module, file.module);
                                         });
  return found == std::end(kBelowTorch) ? nullptr : found;
}

bool is_in_driver_or_runtime(const Frame& frame) {
  return has_device_part(frame, kDriver) || has_device_part(frame, kRuntime);
}

bool is_in_device_runtime(const Frame& frame) {
  return has_device_part(frame, kRuntime);
}

}  // namespace ddpdoctor::model
