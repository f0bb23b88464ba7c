// SPDX-License-Identifier: Apache-2.0
// Some ranks reach a collective only because a condition tests the rank (`if rank == 0:`); the
// others never come. The call may pair with the others' next one, so the hang shows at a later
// line: the first difference counts.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/call_sites/own_half.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/partings/user_call.h"
#include "collector/graph/history.h"

namespace ddpdoctor::detectors {
namespace {

/// What has to change is the call under the test, wherever the ranks that never came stand now.
void put_guarded_call_first(const Parting& parting, Finding& finding) {
  const auto guarded =
      std::find_if(finding.locations.begin(), finding.locations.end(), [&](const Location& one) {
        return one.file == parting.rest.site().file && one.line == parting.rest.site().line;
      });
  if (guarded != finding.locations.end()) {
    std::rotate(finding.locations.begin(), guarded, guarded + 1);
  }
}

/// What the user can move: the call as the source has it, else the operation.
std::string named(const model::JobModel& job, const Side& side, std::string_view otherwise) {
  const std::string call = user_call(job, side);
  if (!call.empty()) {
    return call;
  }
  return side.operation.empty() ? std::string(otherwise) : side.operation;
}

/// The half of those who are past the function that the others wait in.
std::optional<OwnHalf> missed_half(const model::JobModel& job, const Parting& parting) {
  const model::CallSite& first = parting.rest.site();
  const bool in_it = std::any_of(
      parting.odd.path.begin(), parting.odd.path.end(), [&first](const model::CallSite& site) {
        return site.file == first.file && site.function == first.function;
      });
  return in_it ? std::nullopt : own_half(job, first, parting.rest.operation, parting.odd.ranks);
}

/// Both halves stand under a test of the rank, and are meant to: one way through the function
/// leaves the second one out.
void tell_missed_half(const OwnHalf& half, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const std::string who = said(parting.odd.ranks);
  finding.summary =
      fmt::format("{} left {} without its own {} at {}:{}: {} {} for that in the one at {}", who,
                  half.call.function, parting.rest.operation, base::file_name(half.call.file),
                  half.call.line, said(parting.rest.ranks),
                  parting.rest.ranks.size() == 1 ? "waits" : "wait", place(parting.rest.site()));
  std::erase_if(finding.locations, [&explanation](const Location& one) {
    return one.file == explanation.branch->where.file && one.line == explanation.branch->where.line;
  });
  finding.locations.push_back(location(half.call, {}, fmt::format("what {} left out", who)));
  if (half.way_out) {
    finding.locations.push_back(location(half.way_out->where, {}, "leads out before it"));
    finding.fix = fmt::format(
        "Let {} come to {} on every way through {}: also before it leaves by `{}` ({}).", who,
        parting.rest.operation, half.call.function, half.way_out->condition,
        place(half.way_out->where));
  } else {
    finding.fix = fmt::format("Let {} come to {} ({}) whatever happens before it.", who,
                              parting.rest.operation, place(half.call));
  }
}

/// All ranks make calls from this line (a layer that reduces), and these came to it through
/// another.
bool came_its_own_way(const Branch& branch, const Parting& parting) {
  const Path& path = parting.odd.path;
  return branch.leads_to_ours && graph::same_line(parting.odd.site(), parting.rest.site()) &&
         !graph::same_line(branch.guarded, parting.odd.site()) &&
         std::any_of(path.begin(), path.end(), [&branch](const model::CallSite& site) {
           return graph::same_line(site, branch.guarded);
         });
}

void tell_own_way(const graph::Examination& examination, const Explanation& explanation,
                  Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string statement = source_quote(examination.job, branch.guarded);
  finding.summary = fmt::format(
      "{} called {} from {}, which only a test of the rank leads to: {} never {} there",
      said(parting.odd.ranks), odd_place(examination, explanation), place(branch.guarded),
      said(parting.rest.ranks), parting.rest.ranks.size() == 1 ? "comes" : "come");
  finding.fix = fmt::format(
      "Leave {} ({}) out of {} ({}), so that every rank makes it, or keep the collective out of "
      "it.",
      statement.empty() ? "it" : statement, place(branch.guarded), condition_quote(branch),
      place(branch.where));
  finding.locations.insert(
      finding.locations.begin(),
      location(branch.guarded, parting.odd.ranks,
               fmt::format("{} came to the call from here", said(parting.odd.ranks))));
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  if (came_its_own_way(branch, parting)) {
    tell_own_way(examination, explanation, finding);
  } else if (branch.leads_to_ours) {
    finding.summary =
        fmt::format("{} called {}, which only a test of the rank leads to: {} never {} there",
                    said(parting.odd.ranks), odd_place(examination, explanation),
                    said(parting.rest.ranks), parting.rest.ranks.size() == 1 ? "comes" : "come");
    finding.fix = fmt::format(
        "Call {} on every rank, or leave it out of {} ({}); guard only the printing and saving.",
        named(examination.job, parting.odd, "it"), condition_quote(branch), place(branch.where));
  } else {
    finding.summary = fmt::format("{} never joined {}: a test of the rank leads past it",
                                  said(parting.odd.ranks), waiting_call(examination, explanation));
    finding.fix =
        fmt::format("Let every rank pass {}: take {} out of {} ({}).", place(parting.rest.site()),
                    named(examination.job, parting.rest, "the call"), condition_quote(branch),
                    place(branch.where));
    put_guarded_call_first(parting, finding);
    if (const auto half = missed_half(examination.job, parting)) {
      tell_missed_half(*half, explanation, finding);
      return;
    }
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("{} tests the rank and separates {} from {}", condition_quote(branch),
                           said(parting.odd.ranks), said(parting.rest.ranks))});
}

Findings detect(const graph::Examination& examination) {
  Findings findings =
      findings_with(examination, Cause::kRankConditional, "rank-conditional-collective",
                    [&](const Explanation& explanation, Finding& finding) {
                      tell(examination, explanation, finding);
                    });
  if (!findings.empty()) {
    return findings;
  }
  if (const auto unseen = unseen_decision(examination);
      unseen && unseen->source == program::Source::kRank) {
    findings.push_back(finding_of(examination, *unseen, "rank-conditional-collective"));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stands still at the end of an evaluation, at a checkpoint or when something is logged. One rank, mostly 0, is in a
collective; the others are in the next one, in backward, or already in the next epoch. GPUs show 100 %.

Why: a collective ends only when every rank of the group has called it. Here it stands under a condition that tests the rank:
`if rank == 0`, `is_main_process`, `@rank_zero_only`. Hidden collectives count too: metric.compute(), self.log(sync_dist=True),
state_dict() of sharded models, the forward of DistributedDataParallel with buffers. Libraries pair collectives by order and not by
name, so the extra call may meet the others' next one, and the hang shows at a later, innocent line.

How it is recognised: by the lowest sequence number at which ranks call different things or come from different lines, and a condition in your
source that leads one side there and tests the rank, whatever it is called: its value is followed through variables, functions, attributes,
decorators and files to `dist.get_rank()`, `os.environ["RANK"]`, `is_main_process` and their like.

The fix: every rank makes the call, and only the printing is guarded.

    -    if rank == 0:
    -        loss = gather_loss(loss)      # a collective
    -        print(loss)
    +    loss = gather_loss(loss)
    +    if rank == 0:
    +        print(loss)
)";

}  // namespace

extern const Detector rank_conditional_collective;
const Detector rank_conditional_collective = {
    .kind = "rank-conditional-collective",
    .title = "A collective is reached only under a test of the rank",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors
