// SPDX-License-Identifier: Apache-2.0
// All ranks wait at one line: what may have parted them behind it. The choices and loops that they
// have passed, of which one way launches another number of collectives, and of which something says
// that ranks may have gone different ways.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/partings/launch.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/standing.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/syntax/decisions.h"

namespace ddpdoctor::detectors {

/// How well something speaks for a candidate; the order is that of strength.
enum class Speaks {
  kNothingElse,  // the environment, or whether there is a value at all
  kOwnBatches,   // a loop over the rank's own batches, which has ended on some rank
  kException,    // ranks on which it is raised leave calls out
  kOwn,          // the rank's own data, clock, files; elements of its own
  kRank,         // the number of the rank
  kValues,       // it came out differently: read from the memory of the ranks
};

struct Candidate {
  program::DecisionKind kind = program::DecisionKind::kIf;
  model::CallSite where;  // the decision or the header of the loop
  std::string condition;  // what is tested, gone over or caught
  model::CallSite call;   // the collective that one way launches
  std::string operation;
  Launch::Is is = Launch::Is::kCollective;
  bool inside = true;         // it is launched where the test holds; else where it does not
  bool skips = false;         // what is left of an iteration, by a test in a loop
  bool of_batches = false;    // a loop over batches or numbers, not over elements
  bool ends_loop = false;     // there are no more batches: the loop around it ends
  model::CallSite after{};    // the collective behind a loop over batches; unknown: where all wait
  model::CallSite handler{};  // the except clause that the value comes from
  Speaks speaks = Speaks::kNothingElse;
  program::Source source = program::Source::kUnknown;
  model::RankSet differ{};  // of kValues: the few
  int distance = 0;         // steps back from the line

  [[nodiscard]] bool is_loop() const;
};

/// The nearest first; `standing` is one of the ranks, which all are at its line, `ranks` all of
/// them.
std::vector<Candidate> candidates_behind(const model::JobModel& job,
                                         const graph::Standing& standing,
                                         const model::RankSet& ranks);

}  // namespace ddpdoctor::detectors
