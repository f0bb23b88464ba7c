// SPDX-License-Identifier: Apache-2.0
// A host runs ahead of its GPU: where it waits for a value, it launched the collective before that
// line. Without records, the source shows which collective that is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/activity_rules.h"
#include "collector/graph/standing.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::graph {

/// The function of torch.distributed that a callee is, resolved through the imports of its file.
const Operation* operation_called(const program::SourceText& lines, std::string_view callee);

/// A file of the user wraps a model in DistributedDataParallel.
bool wraps_in_ddp(const model::JobModel& job);

/// The last collective that a host at this line launched, and its call string.
struct LaunchedCall {
  std::string operation;
  std::vector<model::CallSite> callers;  // frames of the call, innermost first
  bool maybe = false;                    // some path skips the call
  // The call that made its group, if the source shows it; no node for a call of the whole job.
  program::Node made_group{};
  bool unrecorded = false;  // no recorder sees such calls
};

/// `callers`: the user's frames of a host that waits for its device, innermost first; only the
/// first `frames` of them are searched, because all ranks launched what came before they diverged.
/// `here`: the innermost line itself may have launched it. Nothing if several calls may have been
/// the last one.
std::optional<LaunchedCall> launched_last(const model::JobModel& job,
                                          const std::vector<model::CallSite>& callers,
                                          std::size_t frames, bool here);

/// A rank and the call that its host launched last.
struct LaunchedBy {
  model::Rank rank = 0;
  LaunchedCall call;
};

/// The last calls of all ranks, if all wait for their devices at different lines and each launched
/// a collective in a group that the source shows to be made by one call; otherwise empty.
std::vector<LaunchedBy> launched_in_groups(const model::JobModel& job,
                                           const std::vector<Standing>& standings);

/// The backward() that a thread at these lines has passed last, and its call string; empty if there
/// is none, or if several may have been the last one. Arguments as for launched_last().
std::vector<model::CallSite> backward_before(const model::JobModel& job,
                                             const std::vector<model::CallSite>& callers,
                                             bool here);

/// Everything that the thread called in its innermost user's line has returned: the line waits in a
/// function that has no Python frame.
bool waits_in_line_itself(const model::Thread& thread);

/// Without records, ranks that wait for their GPUs at different lines are treated as waiting in
/// their last launched call. With records, so is a rank all of whose calls are over: its GPU can
/// only be in an operation that no recorder sees.
void take_launched_calls(const model::JobModel& job, const History& history,
                         std::vector<Standing>& standings);

}  // namespace ddpdoctor::graph
