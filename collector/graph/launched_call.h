// SPDX-License-Identifier: Apache-2.0
// A host runs ahead of its GPU: where it waits for a value, it has launched the collective before
// that line. Without records the source says which one that is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/activity_rules.h"
#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// A function of torch.distributed that a callee is, by the imports of its file.
const Operation* operation_called(const program::SourceText& lines, std::string_view callee);

/// A file of the user wraps a model in DistributedDataParallel.
bool wraps_in_ddp(const model::JobModel& job);

/// The collective that a host at this place has launched last, and the way there.
struct LaunchedCall {
  std::string operation;
  std::vector<model::CallSite> callers;  // of the call, innermost first
  bool maybe = false;                    // a way leads past it
};

/// `callers`: the user's frames of a host that waits for its device, innermost first; the first
/// `frames` of them are asked: what a rank launched before it parted from the others, these have
/// launched as well. `here`: the innermost line may have launched it itself. Nothing where several
/// calls may have been the last one.
std::optional<LaunchedCall> launched_last(const model::JobModel& job,
                                          const std::vector<model::CallSite>& callers,
                                          std::size_t frames, bool here);

/// Without records, ranks that wait for their GPUs at different lines wait in what they launched
/// last.
void take_launched_calls(const model::JobModel& job, const History& history,
                         std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
