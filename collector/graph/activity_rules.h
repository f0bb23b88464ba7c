// SPDX-License-Identifier: Apache-2.0
// Which frames betray what a thread is doing: a table, and the one question asked of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// How a rule's function is compared: the Python name's last part, or a piece of the native name.
enum class Match { kPython, kNative, kNativeExact };

/// A frame that names an activity. Of all that match below the user's innermost frame the
/// weightiest wins: `new_group` waits in a store, and that it is in `new_group` says more.
struct ActivityRule {
  Match match = Match::kPython;
  std::string_view function;  // empty = any
  std::string_view file;      // Python: piece of the path; empty = any
  Activity activity = Activity::kUnknown;
  int weight = 0;
};

std::span<const ActivityRule> activity_rules();

/// A public function of torch.distributed that waits for other ranks; empty operation = no such
/// function.
struct Operation {
  std::string_view function;   // as in distributed_c10d.py
  std::string_view operation;  // as recorded
  Activity activity = Activity::kCollective;
};

/// nullptr when the function is none of them.
const Operation* operation_of(std::string_view function);

/// "DistributedDataParallel.forward" → "forward".
std::string_view plain_name(std::string_view qualified);

/// The rule that decides for these frames (innermost first), nullptr when none matches. `at`
/// receives the frame.
const ActivityRule* deciding_rule(std::span<const model::Frame> frames, const model::Frame** at);

/// When no rule matches: what the reader of locks, the scheduler and the user's own line say.
Activity activity_by_state(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::graph
