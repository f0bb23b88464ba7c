// SPDX-License-Identifier: Apache-2.0
// Two paths through the user's source: where they diverge, and which condition or loop separates
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {

/// The user's frames of a rank, innermost first.
using Path = std::vector<model::CallSite>;

/// Two places in one function.
bool same_function(const model::CallSite& a, const model::CallSite& b);

/// The function in which two paths diverge, and the frames below it on either side (innermost
/// first).
struct Fork {
  model::CallSite ours;
  model::CallSite theirs;
  Path below_ours;
  Path below_theirs;
};

/// All Python lines of the thread's stack, also those of libraries.
Path python_path(const model::Thread& thread);

/// nullopt if the paths have no common function or are equal.
std::optional<Fork> fork_of(const Path& ours, const Path& theirs);

/// They diverge at two lines without known source, and ours leads into another function: a branch
/// there may have led to a collective that the others do not call.
bool may_hide_a_branch(const model::JobModel& job, const std::optional<Fork>& fork);

/// A condition in the user's source.
struct Test {
  model::CallSite where;
  std::string condition;
};

/// A condition that leads to one of two paths but not to the other.
struct Branch {
  model::CallSite where;  // line of the condition
  std::string condition;  // as written in the source
  program::Dependence on = program::Dependence::kNone;
  bool leads_to_ours = true;
  model::CallSite guarded;         // the line that it guards
  bool skips = false;              // leads to a `continue`: skips the rest of the iteration
  bool caches = false;             // a decorator that keeps results: a kept one skips the function
  bool defers = false;             // guards a no_sync(): the side that reached it made no call
  bool catches = false;            // an except clause: skips the code after the exception
  std::vector<Test> or_else{};     // other conditions that may have left the same loop
  model::CallSite equal_rounds{};  // the loop in one iteration of which a side skipped its call
  bool unproven = false;           // the origin of its value is unknown, or known only by a name
};

/// The branch that tests the rank, if one separates these paths.
std::optional<Branch> rank_branch(const model::JobModel& job, const Fork& fork,
                                  const model::RankSet& ours, const model::RankSet& theirs);

/// The branch that tests something each rank decides by itself; conditions that are equal on all
/// ranks (step counts, options) do not count. `ours_behind`: it is known whose call comes first, so
/// that only a branch leading there can separate them.
std::optional<Branch> data_branch(const model::JobModel& job, const Fork& fork, bool tie = false,
                                  std::optional<bool> ours_behind = std::nullopt);

/// Any condition below the fork that may differ between ranks, even a bare flag: for ranks that
/// certainly made different calls, if nothing better separates them. `ours_behind` as for
/// data_branch.
std::optional<Branch> any_branch(const model::JobModel& job, const Fork& fork,
                                 std::optional<bool> ours_behind = std::nullopt);

/// True if the paths diverge into two branches of one if.
bool are_siblings(const model::JobModel& job, const Fork& fork);

/// A loop that one path is in and the other has left (or is iterating again further out).
struct LeftLoop {
  model::CallSite where;  // the loop's header
  std::string header;     // "for batch in loader"
  bool ours_left = true;
  bool over_keys = false;     // iterates over names or tensors, not over batches
  bool over_batches = false;  // over batches of a DataLoader or iterator, or steps of a range
  bool fixed = false;     // every rank makes the same number of iterations: no rank left it early
  bool in_step = false;   // inside one iteration of such a loop, and not over batches
  bool shadowed = false;  // ranks that have left it participate for others in torch's Join
  // A condition that leaves it, decided by rank or data; with leads_to_ours = false, one that leads
  // into it, as in a generator that yields only where the condition holds.
  std::optional<Branch> way_out;
};

std::optional<LeftLoop> left_loop(const model::JobModel& job, const Fork& fork);

/// How certain it is that the ranks in a loop began it again, so that the others left an outer one.
enum class BegunAnew { kMaybe, kProbably, kCertainly };

/// A loop around `inner` that was left together with it: over epochs, left by a test that each rank
/// decides by itself. kMaybe: the test must read data directly, or be a stop flag. kCertainly: any
/// test.
std::optional<LeftLoop> loop_left_with(const model::JobModel& job, const Fork& fork,
                                       const LeftLoop& inner, BegunAnew begun);

/// The loop in which one side makes its calls and which the other is not in: the side may be in the
/// next iteration of everything around it.
std::optional<LeftLoop> loop_of_calls(const model::JobModel& job, const Fork& fork, bool of_ours);

/// A loop over batches or steps, or one that a condition leaves; not one over modules.
bool is_over_batches(const std::optional<LeftLoop>& loop);

/// The condition is in a loop that one side has left for good, and leads the others, who are still
/// in it, to their call: it says nothing about the side outside.
bool stands_in_left_loop(const model::JobModel& job, const Fork& fork, const Branch& branch);

/// Whether a condition is true for a rank if it compares the rank's number ("x == 0"); nullopt if
/// the expression is more than one comparison with numbers.
std::optional<bool> holds_for(std::string_view condition, model::Rank rank);

}  // namespace ddpdoctor::detectors
