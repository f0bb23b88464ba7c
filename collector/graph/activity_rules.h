// SPDX-License-Identifier: Apache-2.0
// Which frames show what a thread is doing: a table and its lookup.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// How a rule's function is compared: the last part of the Python name, or a part of the native
/// name. `kModule`: any function of a library, with or without symbols. `kInnermostPython`: a
/// Python function that is the innermost frame of a stack without native frames: it is in a native
/// call.
enum class Match { kPython, kInnermostPython, kNative, kNativeExact, kModule };

/// A frame that names an activity. Of all rules that match below the user's innermost frame, the
/// one with the highest weight wins: `new_group` waits in a store, and `new_group` is the more
/// informative frame.
struct ActivityRule {
  Match match = Match::kPython;
  std::string_view function;  // empty = any
  std::string_view file;      // part of the path of the source or library; empty = any
  Activity activity = Activity::kUnknown;
  int weight = 0;
};

std::span<const ActivityRule> activity_rules();

/// A public function of torch.distributed that waits for other ranks; an empty operation means that
/// it is not one.
struct Operation {
  std::string_view function;   // as in distributed_c10d.py
  std::string_view operation;  // as recorded
  Activity activity = Activity::kCollective;
  bool unrecorded = false;  // no recorder of collectives sees it
};

/// nullptr if the function is not in the table.
const Operation* operation_of(std::string_view function);

/// A function whose kernel waits for the same kernel of other ranks, by its full name; no recorder
/// of collectives sees it. nullptr if it is not in the table.
const Operation* device_operation_of(std::string_view full_name);

/// "DistributedDataParallel.forward" → "forward".
std::string_view plain_name(std::string_view qualified);

/// The rule that decides for these frames (innermost first); nullptr if none matches. `at` receives
/// the frame.
const ActivityRule* deciding_rule(std::span<const model::Frame> frames, const model::Frame** at);

/// The rule for a framework's own wait whose file, under a short name, looks like the user's:
/// vLLM's `dequeue` in "vllm/…/shm_broadcast.py". `user` is the user's innermost frame, or nullptr.
const ActivityRule* rule_of_file(const model::Thread& thread, const model::Frame* user);

/// Used when no rule matches: decides by the lock reader, the scheduler state and the user's own
/// line.
Activity activity_by_state(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::graph
