// SPDX-License-Identifier: Apache-2.0
// The parts of known_exceptions(), by the program that writes the messages.
#pragma once

#include <span>

#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {

/// Of NCCL, gloo, MPI, the kernel and the drivers.
std::span<const KnownException> messages_of_transports();

/// Of those that start processes: Ray, dask, vLLM, DeepSpeed, process pools.
std::span<const KnownException> messages_of_workers();

}  // namespace ddpdoctor::detectors
