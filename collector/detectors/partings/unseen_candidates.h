// SPDX-License-Identifier: Apache-2.0
// All ranks wait at one line: finds what may have separated them before it. Candidates are the
// choices and loops that they have passed, if one branch launches a different number of collectives
// and some evidence shows that ranks may have taken different branches.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/partings/launch.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/standing.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/syntax/decisions.h"

namespace ddpdoctor::detectors {

/// How strong the evidence for a candidate is, in ascending order.
enum class Speaks {
  kNothingElse,  // only the environment, or whether there is a value at all
  kOwnBatches,   // a loop over the rank's own batches, which has ended on some rank
  kException,    // ranks on which it is raised skip calls
  kOwn,          // the rank's own data, clock, files or elements
  kRank,         // the number of the rank
  kValues,       // different values, read from the memory of the ranks
};

struct Candidate {
  program::DecisionKind kind = program::DecisionKind::kIf;
  model::CallSite where;  // the decision or the header of the loop
  std::string condition;  // the tested, iterated or caught expression
  model::CallSite call;   // the collective that one branch launches
  std::string operation;
  Launch::Is is = Launch::Is::kCollective;
  bool inside = true;  // true: launched if the test holds; otherwise if it does not
  // It chooses the function that a call runs; which outcome launches is unknown.
  bool dispatches = false;
  bool of_context = false;    // kExcept: the `with` of a context that may end an exception
  bool skips = false;         // a test in a loop that skips the rest of an iteration
  bool of_batches = false;    // a loop over batches or numbers, not over elements
  bool ends_loop = false;     // no more batches: the loop around it ends
  model::CallSite after{};    // the collective after a loop over batches; unknown: where all wait
  model::CallSite handler{};  // the except clause from which the value comes
  Speaks speaks = Speaks::kNothingElse;
  program::Source source = program::Source::kUnknown;
  model::RankSet differ{};  // for kValues: the smaller side
  int distance = 0;         // steps back from the line

  [[nodiscard]] bool is_loop() const;
};

/// The nearest first; `standing` is any of the ranks, which are all at its line; `ranks` are all of
/// them.
std::vector<Candidate> candidates_behind(const model::JobModel& job,
                                         const graph::Standing& standing,
                                         const model::RankSet& ranks);

}  // namespace ddpdoctor::detectors
