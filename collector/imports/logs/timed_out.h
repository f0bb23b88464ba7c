// SPDX-License-Identifier: Apache-2.0
// A call that gives up raises where it waited: such a traceback is a stack of a rank that hung.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {

/// How job_of_dumps names these stacks.
inline constexpr std::string_view kTimedOut = model::kOfTraceback;

struct LastStack {
  StackDump dump;
  bool timed_out = false;  // else another rank had given up before
};

/// The stack of the last traceback in these lines of one rank, when it ends in a wait for other
/// ranks, and the rank raised nothing of its own before.
std::optional<LastStack> last_stack(std::span<const std::string_view> lines);

/// The rank that a line of torch's says it waits for.
std::optional<model::Rank> awaited_rank(std::string_view line);

/// Ranks that wrote to the log and did not raise (`raised` says who did), beside others that timed
/// out: they live and are elsewhere, unless the log tells of their call. The job stands still.
void settle_timed_out(std::map<model::Rank, bool> raised, model::JobModel& job);

/// The process stands for a rank that timed out: how it ended then says nothing.
bool has_timed_out(const model::Process& process);

}  // namespace ddpdoctor::imports
