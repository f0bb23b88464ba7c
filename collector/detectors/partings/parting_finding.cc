// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parting_finding.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/gloo_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/dispatch.h"
#include "collector/detectors/partings/dispatch_words.h"
#include "collector/detectors/partings/framework_paths.h"
#include "collector/detectors/partings/framework_place.h"
#include "collector/detectors/partings/handed_decision.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/parting_calls.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/recomputation.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

/// At a line that does not indicate a wait.
bool on_its_way(const Side& side) {
  return !side.calls() &&
         (side.activity() == graph::Activity::kUnknown ||
          side.activity() == graph::Activity::kComputing ||
          side.activity() == graph::Activity::kGpu || side.activity() == graph::Activity::kSaving ||
          side.activity() == graph::Activity::kDataLoader);
}

Confidence confidence(const Examination& examination, const Parting& parting, int extra_facts) {
  Confidence result = confidence_of(parting.facts() + extra_facts);
  // Unobserved ranks cannot change a recorded majority.
  const bool decided =
      parting.unobserved.empty() ||
      (parting.recorded &&
       parting.rest.ranks.size() > parting.odd.ranks.size() + parting.unobserved.size());
  // A host runs ahead of its device. A rank that waits for its device at one line may be busy
  // there, iteration after iteration, and still arrive; a rank that stays in a call after a
  // deciding branch is not only further ahead.
  const bool odd_on_device = parting.odd.activity() == graph::Activity::kGpu;
  const bool rest_on_device = parting.rest.activity() == graph::Activity::kGpu;
  if (!parting.recorded && (odd_on_device || rest_on_device)) {
    const bool decided_there = !odd_on_device && extra_facts > 0;
    result = at_most(result, decided_there ? Confidence::kLikely : Confidence::kPossible);
  }
  // The source shows what a host launched before the line in which it waits.
  const auto is_read = [](const Side& side) {
    return side.standing != nullptr && side.standing->launched;
  };
  if (is_read(parting.odd) || is_read(parting.rest)) {
    result = at_most(result, examination.still() ? Confidence::kLikely : Confidence::kPossible);
  }
  // A lost call may be the one that decides between sides of equal size.
  const bool undecided = parting.tie && examination.job.coverage.events_lost > 0;
  // Two recorded calls under one number are wrong even while hosts run on ahead of their GPUs.
  const bool provable = parting.recorded && parting.about != graph::Disagreement::kMissing;
  const bool moves_unproven =
      !may_hang(examination) && (!provable || examination.job.coverage.events_lost > 0);
  if (!decided || undecided || moves_unproven) {
    return Confidence::kPossible;
  }
  if (!may_hang(examination)) {
    result = at_most(result, Confidence::kLikely);
  }
  if (!parting.unobserved.empty()) {
    result = at_most(result, Confidence::kLikely);
  }
  // One snapshot in which some ranks are between calls: every step of a healthy job looks the same.
  if (!provable && !examination.job.ended && on_its_way(parting.odd) &&
      stuck(examination) != Confidence::kLikely) {
    return Confidence::kPossible;
  }
  if (!provable && !examination.still() && !examination.job.ended) {
    result = at_most(result, Confidence::kLikely);
  }
  return result;
}

bool has_crashed(const Examination& examination, model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  const auto exit = standing == nullptr || standing->process == nullptr
                        ? std::nullopt
                        : exit_of(examination.job, *standing->process);
  return exit && crashed(*exit);
}

/// "rank 1 died here, in all_reduce: …" if this is its newest call; empty otherwise.
std::string death_note(const Examination& examination, const Side& side) {
  const auto in_this_call = [&](model::Rank rank) {
    const model::CollectiveCall* last =
        side.call == nullptr ? nullptr : examination.history.last(side.call->group, rank);
    return last != nullptr && last->sequence == side.call->sequence &&
           has_crashed(examination, rank);
  };
  if (side.ranks.empty() || !std::all_of(side.ranks.begin(), side.ranks.end(), in_this_call)) {
    return {};
  }
  std::string text = fmt::format("{} died here, in {}", said(side.ranks), side.operation);
  for (const GlooSizes& sizes : gloo_sizes(examination.job)) {
    if (sizes.rank && side.ranks.contains(*sizes.rank)) {
      return text + fmt::format(": gloo aborted it, because it received {} bytes and expected {}",
                                sizes.received, sizes.expected);
    }
  }
  return text;
}

std::string culprit_note(const Examination& examination, const Explanation& explanation) {
  const Side& odd = explanation.parting.odd;
  const std::string who = said(odd.ranks);
  if (std::string died = death_note(examination, odd); !died.empty()) {
    return died;
  }
  if (explanation.parting.shifted && odd.call != nullptr) {
    return fmt::format("{} called {} here", who, call_name(examination.job, *odd.call));
  }
  if (odd.calls()) {
    return fmt::format("{} {} here, in {}", who, is_or_are(odd.ranks), odd.operation);
  }
  return fmt::format("{} {} here", who, is_or_are(odd.ranks));
}

/// "ranks 1-3 are waiting here, in all_reduce, for 2.2 s"; only if they are in a call.
std::string waiting_note(const Examination& examination, const Parting& parting) {
  const Side& rest = parting.rest;
  if (rest.passed_its_call()) {
    return fmt::format("{} called {} here instead, which finished", said(rest.ranks),
                       rest.operation);
  }
  return rest.calls() ? waiting_here(examination.job, rest.ranks, "in " + rest.operation)
                      : ranks_do(rest.ranks, "is here", "are here");
}

// For a rank known only from records, the newest record is closest to its position.
void add_newest_call(const Parting& parting, Finding& finding) {
  const graph::Standing* standing = parting.odd.standing;
  if (standing != nullptr && standing->activity == graph::Activity::kBetweenCalls &&
      standing->user.known()) {
    finding.locations.push_back(location(
        *standing,
        fmt::format("the newest recorded call of rank {}, which finished", standing->rank)));
  }
}

// A rank whose call was matched by order is now at another line.
void add_present_place(const Parting& parting, Finding& finding) {
  const graph::Standing* standing = parting.odd.standing;
  if (parting.shifted && standing != nullptr && standing->user.known() &&
      !graph::same_line(standing->user, parting.odd.site())) {
    finding.locations.push_back(
        location(*standing, fmt::format("rank {} is here now", standing->rank)));
  }
}

/// Ranks of a side that make the same call from another line (the branch of another case), by line.
std::map<model::CallSite, model::RankSet> other_places(const Examination& examination,
                                                       const Parting& parting, const Side& side) {
  std::map<model::CallSite, model::RankSet> places;
  for (const model::Rank rank : side.ranks) {
    const graph::Standing* standing = examination.standing(rank);
    const bool in_it = standing != nullptr && standing->call && side.calls() &&
                       standing->call->operation == side.operation &&
                       standing->call->group == parting.group &&
                       standing->call->sequence == parting.sequence;
    if (!parting.shifted && in_it && standing->user.known() &&
        !graph::same_line(standing->user, side.site())) {
      places[standing->user].insert(rank);
    }
  }
  return places;
}

void add_culprits(const Examination& examination, const Explanation& explanation,
                  Finding& finding) {
  constexpr std::size_t kMostPlaces = 3;
  const Side& odd = explanation.parting.odd;
  const auto others = other_places(examination, explanation.parting, odd);
  model::RankSet here = odd.ranks;
  for (const auto& [site, ranks] : others) {
    here = here.minus(ranks);
  }
  if (others.empty() || others.size() > kMostPlaces || here.empty()) {
    finding.locations.push_back(
        location(odd.site(), odd.ranks, culprit_note(examination, explanation)));
    return;
  }
  const auto add = [&](const model::CallSite& site, const model::RankSet& ranks) {
    finding.locations.push_back(
        location(site, ranks,
                 fmt::format("{} {} here, in {}", said(ranks), is_or_are(ranks), odd.operation)));
  };
  add(odd.site(), here);
  for (const auto& [site, ranks] : others) {
    add(site, ranks);
  }
}

/// Without sources: the two lines of the innermost function that both sides are in, the user's or a
/// framework's.
void add_fork(const Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  auto fork = explanation.fork;
  if (!fork || graph::same_line(fork->ours, fork->theirs)) {
    fork = fork_of(whole_path(examination.job, parting.odd),
                   whole_path(examination.job, parting.rest));
  }
  if (!fork || !lines_of(examination.job, fork->ours.file).empty() ||
      graph::same_line(fork->ours, fork->theirs)) {
    return;
  }
  const auto add = [&finding](const model::CallSite& site, const model::RankSet& ranks) {
    const bool told = std::any_of(
        finding.locations.begin(), finding.locations.end(),
        [&site](const Location& one) { return one.file == site.file && one.line == site.line; });
    if (!told && site.known()) {
      finding.locations.push_back(
          location(site, ranks, ranks_do(ranks, "is inside this call", "are inside this call")));
    }
  };
  add(fork->ours, parting.odd.ranks);
  add(fork->theirs, parting.rest.ranks);
}

void add_locations(const Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  const Parting& parting = explanation.parting;
  if (parting.odd.site().known()) {
    add_culprits(examination, explanation, finding);
  } else {
    add_newest_call(parting, finding);
  }
  if (parting.rest.site().known()) {
    const std::string died = death_note(examination, parting.rest);
    finding.locations.push_back(location(parting.rest.site(), parting.rest.ranks,
                                         died.empty() ? waiting_note(examination, parting) : died));
  }
  add_present_place(parting, finding);
  if (explanation.dispatch) {
    add_dispatch(explanation, finding);
  } else if (explanation.branch && explanation.branch->where.known()) {
    finding.locations.push_back(
        location(explanation.branch->where, {}, note_on(*explanation.branch)));
    if (const model::CallSite& loop = explanation.branch->equal_rounds; loop.known()) {
      finding.locations.push_back(location(loop, {}, "has as many iterations on every rank"));
    }
    for (const Test& other : explanation.branch->or_else) {
      finding.locations.push_back(location(other.where, {}, "may decide it, too"));
    }
  } else if (explanation.cause == Cause::kMismatchedOp || explanation.cause == Cause::kSharded ||
             explanation.cause == Cause::kExtra) {
    add_choice(examination, explanation, "decides which ranks call it", finding);
  }
  if (!explanation.dispatch && !explanation.branch) {
    add_fork(examination, explanation, finding);
  }
}

/// The finding without the positions of the ranks: details added by a cause are more useful than a
/// repetition of the lines above.
Finding without_standings(const Examination& examination, const Explanation& explanation,
                          int extra_facts) {
  const Parting& parting = explanation.parting;
  Finding finding;
  finding.culprits = parting.undecided ? model::RankSet{} : parting.odd.ranks;
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  if (!parting.rest.passed_its_call()) {
    finding.waiting = finding.waiting.united(parting.rest.ranks).minus(finding.culprits);
  }
  finding.confidence = confidence(examination, parting, extra_facts);
  add_locations(examination, explanation, finding);
  add_user_line(explanation, finding);
  add_calls(examination, parting, finding);
  add_repeated_forward(parting.odd, finding);
  const bool told = explanation.branch && values_say(examination.job, explanation.branch->where,
                                                     parting) == ValuesSay::kDiffers;
  if (!told) {
    for (std::string& unlike : unlike_values(examination.job, parting)) {
      finding.evidence.push_back({.rank = std::nullopt, .text = std::move(unlike)});
    }
  }
  if (!parting.unobserved.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = said(parting.unobserved) + " could not be observed; that may change the cause"});
  }
  return finding;
}

void add_standings(const Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  add_outcomes(examination, explanation, finding);
  add_whereabouts(finding, examination, explanation.parting.odd.ranks);
  add_whereabouts(finding, examination, explanation.parting.rest.ranks);
}

/// Adds where the deciding value comes from, if another line shows it, or that no line does.
void add_origin(const model::JobModel& job, const Branch& branch, Finding& finding) {
  const program::Origin origin = origin_of(job, branch);
  const bool elsewhere = !origin.chain.empty() && (origin.chain.back().line != branch.where.line ||
                                                   origin.chain.back().file != branch.where.file);
  if (origin.source > program::Source::kUnknown && elsewhere) {
    const program::OriginStep& end = origin.chain.back();
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("{} depends on {}: {} ({}:{})", condition_quote(branch),
                             program::name_of(origin.source), in_backquotes(end.text),
                             base::file_name(end.file), end.line)});
  } else if (branch.unproven && origin.source == program::Source::kUnknown &&
             !origin.unknown.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("the origin of {} is unknown: no captured source file assigns it",
                             in_backquotes(origin.unknown))});
  }
}

}  // namespace

bool add_choice(const graph::Examination& examination, const Explanation& explanation,
                std::string_view note, Finding& finding) {
  const auto branch =
      explanation.fork ? branch_by_values(examination.job, *explanation.fork, explanation.parting)
                       : std::optional<Branch>();
  if (!branch || !branch->where.known()) {
    return false;
  }
  finding.locations.push_back(location(branch->where, {}, std::string(note)));
  return true;
}

Finding finding_of(const Examination& examination, const Explanation& explanation,
                   int extra_facts) {
  Finding finding = without_standings(examination, explanation, extra_facts);
  add_standings(examination, explanation, finding);
  return finding;
}

Findings findings_with(const Examination& examination, Cause cause, std::string_view kind,
                       const std::function<void(const Explanation&, Finding&)>& tell) {
  Findings findings;
  for (const Explanation& explanation : explanations(examination, cause)) {
    // The branch in the source, and its values on the ranks.
    const bool differs =
        (explanation.dispatch && explanation.dispatch->by_value) ||
        (explanation.branch && values_say(examination.job, explanation.branch->where,
                                          explanation.parting) == ValuesSay::kDiffers);
    Finding finding = without_standings(examination, explanation,
                                        (explanation.branch ? 1 : 0) + (differs ? 1 : 0));
    finding.kind = kind;
    tell(explanation, finding);
    // The branch is known to separate them, but its operands are unknown or known by name only.
    if (explanation.branch && explanation.branch->unproven && !differs) {
      finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    }
    if (explanation.branch && !differs && !explanation.dispatch) {
      add_origin(examination.job, *explanation.branch, finding);
    }
    add_handed_decisions(examination, explanation, finding);
    if (!explanation.otherwise.empty()) {
      finding.confidence = at_most(finding.confidence, Confidence::kLikely);
      finding.fix += " " + std::string(explanation.otherwise);
    }
    add_standings(examination, explanation, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
