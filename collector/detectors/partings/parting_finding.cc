// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parting_finding.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/call_sites/deciding_origin.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/ahead_of_device.h"
#include "collector/detectors/evidence/gloo_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/partings/user_call.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

// Conditions and statements longer than this are cut in a sentence.
constexpr std::size_t kLongestQuote = 80;

/// At a place that says nothing of a wait.
bool on_its_way(const Side& side) {
  return !side.calls() &&
         (side.activity() == graph::Activity::kUnknown ||
          side.activity() == graph::Activity::kComputing ||
          side.activity() == graph::Activity::kGpu || side.activity() == graph::Activity::kSaving ||
          side.activity() == graph::Activity::kDataLoader);
}

Confidence confidence(const Examination& examination, const Parting& parting, int extra_facts) {
  Confidence result = confidence_of(parting.facts() + extra_facts);
  // Ranks of whom nothing is known cannot turn a recorded majority.
  const bool decided =
      parting.unobserved.empty() ||
      (parting.recorded &&
       parting.rest.ranks.size() > parting.odd.ranks.size() + parting.unobserved.size());
  // A host runs ahead of its device. Who waits for it at one line may be busy there, round after
  // round, and come yet; who stays in a call behind a branch that decides is not only further on.
  const bool odd_on_device = parting.odd.activity() == graph::Activity::kGpu;
  const bool rest_on_device = parting.rest.activity() == graph::Activity::kGpu;
  if (!parting.recorded && (odd_on_device || rest_on_device)) {
    const bool decided_there = !odd_on_device && extra_facts > 0;
    result = at_most(result, decided_there ? Confidence::kLikely : Confidence::kPossible);
  }
  // A call that was lost may be the one that breaks a tie.
  const bool undecided = parting.tie && examination.job.coverage.events_lost > 0;
  if (!decided || undecided || !may_hang(examination)) {
    return Confidence::kPossible;
  }
  if (!parting.unobserved.empty()) {
    result = at_most(result, Confidence::kLikely);
  }
  const bool provable = parting.recorded && parting.about != graph::Disagreement::kMissing;
  // One look at ranks of which some are on their way: any step of a healthy job looks like that.
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

/// "rank 1 died here, in all_reduce: …" where its newest call is this one; empty otherwise.
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
      return text + fmt::format(": gloo ended it, {} bytes came where {} fit", sizes.received,
                                sizes.expected);
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

// A rank that is known by records only: the newest of them is the nearest to where it is.
void add_newest_call(const Parting& parting, Finding& finding) {
  const graph::Standing* standing = parting.odd.standing;
  if (standing != nullptr && standing->activity == graph::Activity::kBetweenCalls &&
      standing->user.known()) {
    finding.locations.push_back(
        location(*standing,
                 fmt::format("the newest recorded call of rank {}, which ended", standing->rank)));
  }
}

// A rank whose call paired by order stands somewhere else now.
void add_present_place(const Parting& parting, Finding& finding) {
  const graph::Standing* standing = parting.odd.standing;
  if (parting.shifted && standing != nullptr && standing->user.known() &&
      !graph::same_line(standing->user, parting.odd.site())) {
    finding.locations.push_back(
        location(*standing, fmt::format("rank {} is here now", standing->rank)));
  }
}

const char* note_of(const Branch& branch) {
  if (branch.catches) {
    return "goes on after an exception";
  }
  if (branch.skips) {
    return "skips what is left of the step";
  }
  return branch.or_else.empty() ? "the branch that separates them"
                                : "one of the ways out that may separate them";
}

/// Ranks of a side that make the same call from another line (the arm of another case): by lines.
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
    finding.locations.push_back(
        location(parting.rest.site(), parting.rest.ranks,
                 died.empty() ? waited_here(examination.job, parting.rest.ranks) : died));
  }
  add_present_place(parting, finding);
  if (explanation.branch && explanation.branch->where.known()) {
    finding.locations.push_back(
        location(explanation.branch->where, {}, note_of(*explanation.branch)));
    for (const Test& other : explanation.branch->or_else) {
      finding.locations.push_back(location(other.where, {}, "another of them"));
    }
  }
}

void add_recorded(const Examination& examination, const Side& side, Finding& finding) {
  if (side.call != nullptr) {
    finding.evidence.push_back(
        {.rank = side.ranks.front(),
         .text = fmt::format(
             "{} called {}{}", said(side.ranks), call_name(examination.job, *side.call),
             side.call->call_site.known() ? " at " + place(side.call->call_site) : std::string())});
  }
}

/// A condition on one line.
std::string quote(std::string text) {
  for (char& c : text) {
    c = c == '\n' ? ' ' : c;
  }
  return "`" + base::elide(text, kLongestQuote) + "`";
}

}  // namespace

namespace {

/// Records say in which call a device is stuck; its host may be lines further.
void add_hosts_ahead(const Examination& examination, const Side& side, Finding& finding) {
  const graph::Standing* standing = side.call == nullptr ? nullptr : side.standing;
  const std::string text =
      standing == nullptr ? std::string() : ahead_of_device(examination, *standing);
  if (!text.empty()) {
    finding.evidence.push_back(
        {.rank = standing->rank,
         .text = fmt::format("rank {} waits on its GPU for {} #{}{}", standing->rank,
                             standing->call->operation, *standing->call->sequence, text)});
  }
}

}  // namespace

Finding finding_of(const Examination& examination, const Explanation& explanation,
                   int extra_facts) {
  const Parting& parting = explanation.parting;
  Finding finding;
  finding.culprits = parting.undecided ? model::RankSet{} : parting.odd.ranks;
  finding.waiting = waiting_ranks(examination).united(parting.rest.ranks).minus(finding.culprits);
  finding.confidence = confidence(examination, parting, extra_facts);
  add_locations(examination, explanation, finding);
  add_recorded(examination, parting.odd, finding);
  add_recorded(examination, parting.rest, finding);
  add_hosts_ahead(examination, parting.rest, finding);
  add_whereabouts(finding, examination, parting.odd.ranks);
  add_whereabouts(finding, examination, parting.rest.ranks);
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
         .text = said(parting.unobserved) + " could not be observed: this may look different"});
  }
  return finding;
}

namespace {

/// Where the value that decides comes from, when another line says it; or that none does.
void add_origin(const model::JobModel& job, const Branch& branch, Finding& finding) {
  const program::Origin origin = origin_of(job, branch);
  const bool elsewhere = !origin.chain.empty() && (origin.chain.back().line != branch.where.line ||
                                                   origin.chain.back().file != branch.where.file);
  if (origin.source > program::Source::kUnknown && elsewhere) {
    const program::OriginStep& end = origin.chain.back();
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("{} depends on {}: {} ({}:{})", condition_quote(branch),
                             program::name_of(origin.source), quote(end.text),
                             base::file_name(end.file), end.line)});
  } else if (branch.unproven && origin.source == program::Source::kUnknown &&
             !origin.unknown.empty()) {
    finding.evidence.push_back({.rank = std::nullopt,
                                .text = fmt::format("no source at hand shows where {} comes from",
                                                    quote(origin.unknown))});
  }
}

}  // namespace

Findings findings_with(const Examination& examination, Cause cause, std::string_view kind,
                       const std::function<void(const Explanation&, Finding&)>& tell) {
  Findings findings;
  for (const Explanation& explanation : explanations(examination, cause)) {
    // The branch as the source has it, and its values as the ranks had them.
    const bool differs =
        explanation.branch && values_say(examination.job, explanation.branch->where,
                                         explanation.parting) == ValuesSay::kDiffers;
    Finding finding =
        finding_of(examination, explanation, (explanation.branch ? 1 : 0) + (differs ? 1 : 0));
    finding.kind = kind;
    tell(explanation, finding);
    // That it separates them is seen; what it asks, nothing or a name alone says.
    if (explanation.branch && explanation.branch->unproven && !differs) {
      finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    }
    if (explanation.branch && !differs) {
      add_origin(examination.job, *explanation.branch, finding);
    }
    if (!explanation.otherwise.empty()) {
      finding.confidence = at_most(finding.confidence, Confidence::kLikely);
      finding.fix += " " + std::string(explanation.otherwise);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::string waiting_call(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  return call_name(examination.job, parting.rest.operation, parting.group, parting.sequence);
}

std::string odd_place(const Examination& examination, const Explanation& explanation) {
  const Side& odd = explanation.parting.odd;
  if (odd.calls() && !odd.site().known() && odd.call != nullptr) {
    return call_name(examination.job, *odd.call);
  }
  if (odd.calls()) {
    return call_in_words(examination.job, odd) + " at " + place(odd.site());
  }
  return odd.standing != nullptr ? whereabouts(examination.job, *odd.standing) : place(odd.site());
}

std::string source_quote(const model::JobModel& job, const model::CallSite& site) {
  const auto line = model::source_line(job, site.file, site.line);
  if (!line || base::trim(*line).empty()) {
    return {};
  }
  return "`" + base::elide(base::trim(*line), kLongestQuote) + "`";
}

std::string condition_quote(const Branch& branch) {
  return quote(branch.condition);
}

std::string conditions_quote(const Branch& branch) {
  std::string text = condition_quote(branch);
  for (const Test& other : branch.or_else) {
    text += " or " + quote(other.condition);
  }
  return text;
}

std::string conditions_placed(const Branch& branch) {
  std::string text = fmt::format("{} ({})", condition_quote(branch), place(branch.where));
  for (const Test& other : branch.or_else) {
    text += fmt::format(" and {} ({})", quote(other.condition), place(other.where));
  }
  return text;
}

}  // namespace ddpdoctor::detectors
