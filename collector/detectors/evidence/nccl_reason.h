// SPDX-License-Identifier: Apache-2.0
// Why NCCL failed: torch prints the reason below the exception.
#pragma once

#include <cstddef>
#include <string>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// Of "NCCL error in: …" the lines below that tell the error: "ncclSystemError: …", and what stands
/// under "Last error:".
std::string nccl_reason(const LogStream& stream, std::size_t index);

}  // namespace ddpdoctor::detectors
