// SPDX-License-Identifier: Apache-2.0
// Two ways through the user's source: where they part, which condition or loop separates them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {

/// The user's frames of a rank, innermost first.
using Path = std::vector<model::CallSite>;

/// The function in which two paths part, and what lies below it on either side (innermost first).
struct Fork {
  model::CallSite ours;
  model::CallSite theirs;
  Path below_ours;
  Path below_theirs;
};

/// nullopt when the paths have no function in common or are the same.
std::optional<Fork> fork_of(const Path& ours, const Path& theirs);

/// They part at two lines of which no source is at hand, and ours leads into another function: a
/// branch there may have led to a collective that the others do not call.
bool may_hide_a_branch(const model::JobModel& job, const std::optional<Fork>& fork);

/// A condition in the user's source.
struct Test {
  model::CallSite where;
  std::string condition;
};

/// A condition that leads to one of two paths and not to the other.
struct Branch {
  model::CallSite where;  // the line of the condition
  std::string condition;  // as the user wrote it
  program::Dependence on = program::Dependence::kNone;
  bool leads_to_ours = true;
  model::CallSite guarded;         // the line that it guards
  bool skips = false;              // leads to a `continue`: leaves out what is left of the round
  bool catches = false;            // an except clause: leaves out what stands behind the exception
  std::vector<Test> or_else{};     // what leads out of the same loop and may have been it as well
  model::CallSite equal_rounds{};  // the loop in a round of which a side left out its call
  bool unproven = false;  // where its value comes from is not at hand, or only a name says it
};

/// The branch that tests the rank, if one separates these paths.
std::optional<Branch> rank_branch(const model::JobModel& job, const Fork& fork,
                                  const model::RankSet& ours, const model::RankSet& theirs);

/// The branch that tests something each rank decides by itself; conditions that are alike on all
/// ranks (step counts, options) are not taken. `ours_behind`: it is known whose call comes first,
/// so that only a branch that leads there can part them.
std::optional<Branch> data_branch(const model::JobModel& job, const Fork& fork, bool tie = false,
                                  std::optional<bool> ours_behind = std::nullopt);

/// Any condition below the fork that may differ between ranks, also a bare flag: for ranks that are
/// known to have called different things, when nothing better separates them.
std::optional<Branch> any_branch(const model::JobModel& job, const Fork& fork);

/// True when the paths part in two arms of one if.
bool are_siblings(const model::JobModel& job, const Fork& fork);

/// A loop that one path is in and the other has left (or goes round once more outside).
struct LeftLoop {
  model::CallSite where;  // the loop's header
  std::string header;     // "for batch in loader"
  bool ours_left = true;
  bool over_keys = false;         // goes over names or tensors, not over batches
  bool over_batches = false;      // of a DataLoader, of an iterator; steps of a range
  bool fixed = false;             // every rank goes round it equally often: nobody left it early
  bool in_step = false;           // lies within one round of such a loop, and is not over batches
  bool shadowed = false;          // those out of it answer for others in torch's Join
  std::optional<Branch> way_out;  // a condition that leaves it, decided by rank or data
};

std::optional<LeftLoop> left_loop(const model::JobModel& job, const Fork& fork);

/// How sure it is that whoever is in a loop began it anew, so that the others left one further out.
enum class BegunAnew { kMaybe, kProbably, kCertainly };

/// A loop around `inner` that was left with it: over epochs, left by a test that each rank decides
/// by itself. Maybe: by one that plainly reads data, or a flag to stop. Certainly: by whatever.
std::optional<LeftLoop> loop_left_with(const model::JobModel& job, const Fork& fork,
                                       const LeftLoop& inner, BegunAnew begun);

/// The loop that one side makes its calls in and that the other is not in: it may be in its next
/// pass of everything around it.
std::optional<LeftLoop> loop_of_calls(const model::JobModel& job, const Fork& fork, bool of_ours);

/// A loop over batches or steps, or one that a condition leads out of; not one over modules.
bool is_over_batches(const std::optional<LeftLoop>& loop);

/// The condition stands in a loop that one side has left for good and leads the others, who are in
/// it still, to their call: it says nothing of those who are out.
bool stands_in_left_loop(const model::JobModel& job, const Fork& fork, const Branch& branch);

/// Whether a condition holds for a rank when what it compares is the number of the rank ("x == 0");
/// nullopt when the expression is more than one comparison with numbers.
std::optional<bool> holds_for(std::string_view condition, model::Rank rank);

}  // namespace ddpdoctor::detectors
