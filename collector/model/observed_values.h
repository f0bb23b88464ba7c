// SPDX-License-Identifier: Apache-2.0
// What expressions of the user's functions came out to on each rank, as they were read from its
// memory. In the model they are facts of kind "value", so that recordings carry them like any other
// evidence; here they have types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

inline constexpr std::string_view kValueFact = "value";
/// Which lock object a `with` or `acquire()` of a thread's stack names: tid, file, line,
/// expression, and lock, a number for the object within its process.
inline constexpr std::string_view kLockFact = "python-lock";

enum class ValueState { kKnown, kStale, kUnknown };
std::string_view state_name(ValueState state);  // "known", "stale", "unknown"

/// What an expression is a part of.
enum class ValueRole {
  kDecision,  // an if, elif, while, match or the like tests it
  kOperand,   // a decision reads it
  kLoop,      // how far a `for` loop has come: "iteration 3 of 8", "ended"
  kHeld,      // a local or an attribute that a function on the stack has at hand
};

/// One expression on one rank.
struct SeenValue {
  std::optional<Rank> rank;
  ValueRole role = ValueRole::kHeld;
  std::string file;
  int line = 0;  // of the decision; of what is held: where the function is
  std::string function;
  int at = 0;              // the line where the function is
  std::string expression;  // as the user wrote it, on one line
  std::string value;       // Python's spelling, shortened; empty = unknown
  ValueState state = ValueState::kUnknown;
  std::string reason;                   // why it is stale or unknown
  std::optional<std::int64_t> items{};  // of a loop: how many it goes over in all
};

Fact fact_of(const SeenValue& seen);

/// Those of ranks, in the order in which they were read: innermost frames first.
std::vector<SeenValue> observed_values(const JobModel& job);

/// Ranks for which an expression came out alike.
struct ValueGroup {
  RankSet ranks;
  std::string expression;
  std::string value;  // empty = unknown
  ValueState state = ValueState::kKnown;
  std::string reason;
};

/// What the decision or loop at this line came out to, by value, the fewest ranks first; then what
/// it reads, where that differs between ranks. Empty when nothing was read there.
std::vector<ValueGroup> values_at(const JobModel& job, std::string_view file, int line);

/// "True on rank 0, False on ranks 1-3" of groups with one expression; where the value is not
/// known, why; empty for no groups.
std::string said(const std::vector<ValueGroup>& groups);

/// Drops what no report can use: what is held alike on all ranks that hold it, or says no more than
/// which rank it is.
void drop_idle_values(std::vector<Fact>& facts);

/// What a finding shows of values: lines whose values stand beside them, and sentences that quote
/// what is held ("`self.mode` is …").
struct Reported {
  std::vector<std::pair<std::string, int>> lines;  // file, line
  std::vector<std::string> sentences;
};

/// For recordings and captures: only what is reported stays.
void keep_reported_values(std::vector<Fact>& facts, const Reported& reported);

}  // namespace ddpdoctor::model
