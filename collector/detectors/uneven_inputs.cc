// SPDX-License-Identifier: Apache-2.0
// Ranks run a different number of steps: some have left the training loop, and the others wait for
// them in its next backward or collective.
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/foreseen.h"
#include "collector/detectors/partings/loop_bound.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/recorded_rounds.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/partings/swallowed.h"
#include "collector/detectors/partings/uneven_ahead.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/yields.h"

namespace ddpdoctor::detectors::uneven_inputs {
namespace {

// The line at which the short ranks left: in the function that both sides share, not deep in what
// they called next.
void put_leaving_line_first(const Explanation& explanation, Finding& finding) {
  if (!explanation.fork) {
    return;
  }
  const model::CallSite& left = explanation.fork->ours;
  if (!finding.locations.empty() && finding.locations.front().line == left.line) {
    return;
  }
  finding.locations.insert(
      finding.locations.begin(),
      location(left, explanation.parting.odd.ranks,
               fmt::format("{} left the loop and {} here", said(explanation.parting.odd.ranks),
                           is_or_are(explanation.parting.odd.ranks))));
}

void add_counts(const graph::Examination& examination, const Parting& parting, Finding& finding) {
  const model::CallSite& site = parting.rest.site();
  const int odd = calls_made_at(examination, parting.group, parting.odd.ranks.front(), site);
  const int rest = calls_made_at(examination, parting.group, parting.rest.ranks.front(), site);
  if (rest > odd) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("rank {} made {} {} at {}, rank {} made {} (recorded calls)",
                             parting.rest.ranks.front(), rest, rest == 1 ? "call" : "calls",
                             line_of(site), parting.odd.ranks.front(), odd)});
  }
}

// The position of the ranks that are still in the loop, and what it iterates over.
void add_place_in_loop(const model::JobModel& job, const Explanation& explanation,
                       Finding& finding) {
  std::vector<std::pair<model::Rank, model::Iteration>> steps;
  for (const model::Rank rank : explanation.parting.rest.ranks) {
    if (const auto loop = loop_seen_at(job, rank, explanation.loop->where)) {
      steps.emplace_back(rank, loop->over);
    }
  }
  add_steps(steps, finding);
}

/// They are in backward in the last iteration of their loop: a rank with the same number of
/// iterations that skipped a parameter in its last backward looks the same.
bool may_be_equal_steps(const graph::Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  return in_backward(examination, parting.rest) &&
         std::all_of(parting.rest.ranks.begin(), parting.rest.ranks.end(), [&](model::Rank rank) {
           const auto loop = loop_seen_at(examination.job, rank, explanation.loop->where);
           return loop && !loop->over.loose && loop->over.left == 0;
         });
}

enum class Steps { kDiffer, kEqual, kUnknown };

/// Whether the number of iterations differs between the sides: by the lengths that are known, or
/// because the loop reads a library's data source. The user's own iterables may end for any reason.
Steps steps_of(const model::JobModel& job, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const model::CallSite& loop = explanation.loop->where;
  const auto seen = loop_seen_at(job, parting.rest.ranks.front(), loop);
  const auto odd = length_gone_over(job, loop, parting.odd.ranks);
  const auto rest = seen && !seen->over.loose ? seen->over.total()
                                              : length_gone_over(job, loop, parting.rest.ranks);
  if (odd && rest) {
    return odd == rest ? Steps::kEqual : Steps::kDiffer;
  }
  const program::SourceText& lines = lines_of(job, loop.file);
  const bool from_library =
      (seen && seen->over.over.starts_with("DataLoader")) ||
      (program::items_of(lines, loop.line, job.sources) == program::Items::kBatches &&
       program::yields_behind(lines, loop.line, job.sources).empty());
  return from_library ? Steps::kDiffer : Steps::kUnknown;
}

void doubt_steps(const model::JobModel& job, const Explanation& explanation, Finding& finding) {
  const Steps steps = steps_of(job, explanation);
  if (steps == Steps::kUnknown) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  } else if (steps == Steps::kEqual) {
    finding.confidence = at_most(finding.confidence, Confidence::kPossible);
    finding.fix =
        "All ranks go over the same number of items: find what skips a call in one iteration, such "
        "as `continue` or a caught exception.";
  }
}

// A finished rank participates for the wrapped modules only, and the others have reached another
// call.
void tell_join(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} left `{}` ({}) and answers only DDP's collectives inside Join; {} in your own {} ({})",
      said(parting.odd.ranks), explanation.loop->header, line_of(explanation.loop->where),
      ranks_do(parting.rest.ranks, "is waiting", "are waiting"), parting.rest.operation,
      line_of(parting.rest.site()));
  finding.fix = fmt::format(
      "Move the {} ({}) out of the Join block; or give every rank the same number of steps and "
      "remove Join.",
      parting.rest.operation, line_of(parting.rest.site()));
}

/// The user's call that runs a loop of a library; empty if the loop is the user's.
std::string runs_library_loop(const model::JobModel& job, const LeftLoop& loop) {
  std::string statement = program::statement_at(lines_of(job, loop.where.file), loop.where.line);
  const bool shown = statement.starts_with(loop.header.substr(0, loop.header.find(' '))) ||
                     statement.find(loop.header) != std::string::npos;
  return shown ? std::string() : std::move(statement);
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const std::string call = runs_library_loop(examination.job, *explanation.loop);
  finding.summary = fmt::format(
      "{} left `{}`{} ({}) early; {} in the next step, waiting in {}", said(parting.odd.ranks),
      explanation.loop->header, call.empty() ? "" : " of " + in_backquotes(call),
      line_of(explanation.loop->where), ranks_do(parting.rest.ranks, "is", "are"),
      waiting_call(examination, explanation));
  finding.fix = kEqualSteps;
  if (explanation.loop->shadowed) {
    tell_join(explanation, finding);
  } else if (const auto bound = unlike_bound(examination.job, explanation.loop->where, parting)) {
    tell_bound(*bound, finding);
  }
  if (const auto around = or_swallowed(examination.job, parting.rest.path)) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    finding.fix += *around;
  }
  doubt_steps(examination.job, explanation, finding);
  if (may_be_equal_steps(examination, explanation)) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    finding.fix +=
        " If the numbers are equal: give every parameter a gradient in the last step, or pass "
        "find_unused_parameters=True to DistributedDataParallel.";
  }
  put_leaving_line_first(explanation, finding);
  finding.locations.push_back(
      location(explanation.loop->where, {},
               call.empty() ? "this loop ended earlier" : "the loop in this call ended earlier"));
  add_counts(examination, parting, finding);
  add_place_in_loop(examination.job, explanation, finding);
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kUneven, "uneven-inputs",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  if (auto ahead = uneven_ahead(examination)) {
    findings.push_back(std::move(*ahead));
  }
  if (auto came_true = foreseen_uneven(examination); came_true && findings.empty()) {
    findings.push_back(std::move(*came_true));
  }
  return findings.empty() ? unseen_findings(examination, "uneven-inputs") : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs near the end of an epoch, at the same step in every run. Some ranks are in validation, at a
checkpoint, in a barrier, or have exited with status 0; the other ranks are in backward.

Why: the ranks get different numbers of batches: a custom sampler, an iterable dataset with fewer shards than ranks times workers, a
wrong __len__, a filter. The ranks with more steps wait in a gradient reduction that the other ranks never join.

How ddpdoctor knows: some ranks wait inside a loop of your source that the others have left, and the records of those that left show
fewer calls from the loop. While the job is still training, ddpdoctor reads the iterators of the loop: ranks whose loops have
different lengths and call a collective in every step will hang, and ddpdoctor reports that before it happens (likely at most). The
lengths prove nothing if a condition can end or skip the loop, in a Join block, under no_sync(), or if more steps follow the loop.

Fix: give every rank the same number of steps, or use Join, which handles unequal numbers.

    -    loader = DataLoader(dataset[rank::world], batch_size=32)
    +    sampler = DistributedSampler(dataset, drop_last=True)
    +    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "uneven-inputs",
                           .title = "Ranks run a different number of steps",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::uneven_inputs
