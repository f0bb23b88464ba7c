// SPDX-License-Identifier: Apache-2.0
// CUDA errors that the NCCL watchdog of a rank was the first to notice: the rank prints no
// traceback.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception:
/// CUDA error: an illegal memory access was encountered".
Findings told_by_watchdogs(const model::JobModel& job, std::string_view kind);

/// Of a watchdog's line without a prefix: "[Rank 1] NCCL watchdog thread terminated with exception:
/// CUDA error: …"; nullopt for other lines.
std::optional<model::Rank> rank_in_watchdogs_line(std::string_view line);

/// A system error of NCCL below the line in which a watchdog ended its rank after a timeout: that
/// rank closed its connections, and this is what the others saw.
bool is_nccl_after_timeout(const model::JobModel& job, const Traceback& traceback);

}  // namespace ddpdoctor::detectors
