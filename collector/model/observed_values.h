// SPDX-License-Identifier: Apache-2.0
// Values of the user's expressions on each rank, read from its memory. The model stores them as
// facts of kind "value", so recordings carry them like other evidence; this header gives them
// types.
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
/// The lock object that a `with` or `acquire()` on a thread's stack uses: tid, file, line,
/// expression, and lock, a number for the object within its process; of an RLock also owner, the
/// tid that holds it (0: none), and count.
inline constexpr std::string_view kLockFact = "python-lock";

enum class ValueState {
  kKnown,
  kStale,
  kUnknown,
  kDerived,  // only in reports: not read, but follows from the lines that the ranks reached
};
std::string_view state_name(ValueState state);  // "known", "stale", "unknown", "derived"

/// The value of an `except` that has caught nothing begins with this.
inline constexpr std::string_view kNoException = "no exception";

/// What an expression belongs to.
enum class ValueRole {
  kDecision,  // tested by an if, elif, while, match or similar
  kOperand,   // a decision reads it
  kTrace,     // a local that only the arm of a decision changes
  kCaught,    // what an `except` caught
  kLoop,      // progress of a `for` loop: "iteration 3 of 8", "ended"
  kHeld,      // a local or attribute of a function on the stack
  kCallee,    // the function that a call reaches: "Eager.step (eager.py:12)"; in a loop over
              // callbacks, all of them: "[Log.after, Save.after]"
};

/// One expression on one rank.
struct SeenValue {
  std::optional<Rank> rank;
  ValueRole role = ValueRole::kHeld;
  std::string file;
  int line = 0;  // line of the decision; for held values, the current line of the function
  std::string function;
  int at = 0;              // the current line of the function
  std::string expression;  // as written in the source, on one line
  std::string value;       // Python's spelling, shortened; empty = unknown
  ValueState state = ValueState::kUnknown;
  std::string reason;                   // why it is stale or unknown
  std::optional<std::int64_t> items{};  // for a loop: its total number of items; if stale, now
  CallSite reached{};            // for a callee: the function, where it begins; unknown in a loop
  std::vector<CallSite> each{};  // for callees in a loop: all functions, in its order
};

/// The value of a loop of which only the number of items is known: "16 items".
std::string said_length(std::int64_t items);

Fact fact_of(const SeenValue& seen);

/// The values of ranks in the order they were read: innermost frames first.
std::vector<SeenValue> observed_values(const JobModel& job);

/// Ranks with the same value of an expression.
struct ValueGroup {
  RankSet ranks;
  std::string expression;
  std::string value;  // empty = unknown
  ValueState state = ValueState::kKnown;
  std::string reason;
  std::optional<std::int64_t> items{};  // see SeenValue
};

/// The values of the decision or loop at this line, each with its ranks, the fewest ranks first;
/// then the values that it reads, if these differ between ranks. Empty if nothing was read there.
std::vector<ValueGroup> values_at(const JobModel& job, std::string_view file, int line);

/// "True on rank 0, False on ranks 1-3" for groups with one expression; the reason if the value is
/// unknown; empty for no groups.
std::string said(const std::vector<ValueGroup>& groups);

/// The functions that the calls at this line reach, if they were read on each of these ranks; in
/// the order of the source.
struct ReachedBy {
  struct Function {
    std::string text;            // for people
    CallSite place;              // where it begins
    std::vector<CallSite> each;  // in a loop: all functions, in its order
    RankSet ranks;
  };
  std::string expression;  // of the callee
  std::vector<Function> functions;
  bool stale = false;  // on some rank it may have been another function at the time of the call
};
std::vector<ReachedBy> callees_at(const JobModel& job, std::string_view file, int line,
                                  const RankSet& ranks);

/// Drops values that no report can use: those that are equal on all ranks, or only show the rank's
/// number.
void drop_idle_values(std::vector<Fact>& facts);

/// The values that a finding shows: lines with values next to them, and sentences that quote held
/// values ("`self.mode` is …").
struct Reported {
  std::vector<std::pair<std::string, int>> lines;  // file, line
  std::vector<std::string> sentences;
};

/// For recordings and captures: removes values that are not reported.
void keep_reported_values(std::vector<Fact>& facts, const Reported& reported);

}  // namespace ddpdoctor::model
