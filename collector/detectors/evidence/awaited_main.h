// SPDX-License-Identifier: Apache-2.0
// A rank that timed out at the entry of a context manager which lets the main process go first: the
// main process was still inside its block.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct AwaitedMain {
  model::RankSet waiting;  // empty: no line names them
  model::CallSite place;   // the user's line of the `with`
  std::string function;    // "main_process_first"
  std::string exception;   // the timeout
  // The library's context manager lets the main process go first; else only its entry is known.
  bool inside = false;
  bool one_host = true;  // else the main process of a node may be another rank
};

/// Nothing if a rank failed for its own reasons.
std::optional<AwaitedMain> awaited_main(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
