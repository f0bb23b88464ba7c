// SPDX-License-Identifier: Apache-2.0
// How strong the evidence is that ranks took different branches of a choice that none of them is
// at.
#pragma once

#include "collector/detectors/partings/unseen_candidates.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/origin/origin.h"
#include "collector/program/questions/choices.h"

namespace ddpdoctor::detectors {

/// A run of a function that is on the stack, or that one on the stack has called.
struct FunctionRun {
  const program::File* file = nullptr;
  std::size_t scope = 0;
  Path callers{};  // the frames around it
  program::Behind behind{};
  bool again = false;  // an outer frame is in a loop
};

class Weights {
 public:
  /// Both must outlive it.
  Weights(const model::JobModel& job, const model::RankSet& ranks) : job_(job), ranks_(ranks) {}

  struct Passing {
    bool of_stack = false;  // the function is on the stack, and passed the choice in this call
    int first_call = 0;     // for a loop: the line of its first launch
  };
  /// Sets what speaks for the candidate. False if the decision had the same result on all ranks.
  bool weigh(const program::Choice& choice, const FunctionRun& run, const Passing& passing,
             Candidate& one) const;

 private:
  /// Never for a comprehension, which iterates over elements.
  [[nodiscard]] bool is_over_batches(const program::Choice& choice, const FunctionRun& run,
                                     int first_call) const;
  /// The rank's share of a collection: `data[rank::world]`, `batches(rank)`.
  [[nodiscard]] bool rests_on_rank(const program::Origin& origin, const FunctionRun& run) const;
  bool weigh_loop(const program::Choice& choice, const FunctionRun& run,
                  const program::Origin& origin, bool of_stack, Candidate& one) const;
  [[nodiscard]] program::Origin origin_of(const program::Decision& decision,
                                          const FunctionRun& run) const;

  const model::JobModel& job_;
  const model::RankSet& ranks_;
};

}  // namespace ddpdoctor::detectors
