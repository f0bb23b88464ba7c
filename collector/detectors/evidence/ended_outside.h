// SPDX-License-Identifier: Apache-2.0
// Jobs whose processes a scheduler ended: a memory limit, an eviction, a failed node, a time limit.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A limit that a scheduler enforces by killing processes.
struct MemoryLimit {
  std::string whose;  // "the memory limit of Slurm step 7123.0"
  std::string line;
  std::string fix;
};
std::optional<MemoryLimit> told_memory_limit(const model::JobModel& job);

/// Nothing if the program continued afterwards.
std::optional<Finding> ended_by_scheduler(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
