// SPDX-License-Identifier: Apache-2.0
// Decisions in functions that are not on a rank's stack: the rank called them and they returned, or
// will call them again. `log(rank, loss)` tests the rank and leads one rank into a collective; on
// the others only the caller is on the stack, and from its values the call can be evaluated up to
// the test.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "collector/program/syntax/source_index.h"
#include "collector/values/decision_reader.h"
#include "collector/values/dispatch_reader.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"
#include "collector/values/loop_reader.h"
#include "collector/values/source_files.h"

namespace ddpdoctor::values {

class CalleeReader {
 public:
  /// All references must outlive this.
  CalleeReader(Evaluator& evaluator, SourceFiles& files, DecisionReader& reader, LoopReader& loops,
               DispatchReader& dispatch, pid_t pid, CpuClock::time_point deadline)
      : evaluator_(evaluator),
        files_(files),
        reader_(reader),
        loops_(loops),
        dispatch_(dispatch),
        pid_(pid),
        deadline_(deadline) {}

  /// Whether the values that an expression reads are still those at the time of the decision.
  using Freshly = std::function<Since(program::Node expression, program::Node owner)>;

  /// This function is on the stack: its own frame is the better evidence.
  void leave_out(const std::string& file, int first_line) {
    running_.emplace(file, first_line);
  }

  /// Evaluates the user's functions that `function` calls, the calls nearest to `line` first.
  void read(const program::Scope& function, int line, Names& names, const Freshly& freshly,
            int depth = 0);

 private:
  void enter(program::Node call, Names& names, const Freshly& freshly, int depth);
  [[nodiscard]] bool tired() const;

  Evaluator& evaluator_;
  SourceFiles& files_;
  DecisionReader& reader_;
  LoopReader& loops_;
  DispatchReader& dispatch_;
  pid_t pid_;
  CpuClock::time_point deadline_;
  std::set<std::pair<std::string, int>> running_;
  int entered_ = 0;
};

}  // namespace ddpdoctor::values
