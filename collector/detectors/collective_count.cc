// SPDX-License-Identifier: Apache-2.0
// Ranks loop over different keys or lists and call one collective for each: one of them runs more
// iterations.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors::collective_count {
namespace {

constexpr std::size_t kLongestStatement = 80;

/// No loop in the source: a statement that logs values which the ranks reduce together.
void tell_logged(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.summary = fmt::format(
      "{} logged values that {} did not log: `{}` ({}); each value with sync_dist=True is a "
      "collective",
      said(parting.odd.ranks), said(parting.rest.ranks),
      base::elide(explanation.loop->header, kLongestStatement), line_of(explanation.loop->where));
  finding.fix =
      "Log the same names on every rank, with a zero where a value is missing; or log without "
      "sync_dist and reduce one stacked tensor.";
  // Goes before the line that started the trainer, where all ranks are.
  finding.locations.insert(finding.locations.begin(),
                           location(explanation.loop->where, parting.odd.ranks,
                                    "logs values that every rank has to reduce"));
}

/// A test between the loop and the call of the ranks in it, and the line of that call.
struct Filter {
  Test test;
  int call = 0;
};

/// `if p.grad is not None:` between the loop and the call of the ranks in it.
std::optional<Filter> filter_of(const model::JobModel& job, const Explanation& explanation) {
  const LeftLoop& loop = *explanation.loop;
  const Side& in = loop.ours_left ? explanation.parting.rest : explanation.parting.odd;
  const program::SourceText& lines = lines_of(job, loop.where.file);
  const auto at = std::find_if(in.path.begin(), in.path.end(), [&loop](const auto& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
  if (at == in.path.end()) {
    return std::nullopt;
  }
  for (const program::Block& block : program::deciding_branches(lines, at->line)) {
    const auto around = program::loop_around(lines, block.line);
    if (!is_loop(block) && around && around->line == loop.where.line) {
      model::CallSite where = loop.where;
      where.line = block.line;
      return Filter{.test = {.where = where, .condition = block.condition}, .call = at->line};
    }
  }
  return std::nullopt;
}

/// The loop has the same length on all ranks as far as known: the iterations that skip the call
/// differ.
void tell_filter(const model::JobModel& job, const Explanation& explanation, const Filter& found,
                 Finding& finding) {
  const Parting& parting = explanation.parting;
  const Test& filter = found.test;
  finding.summary = fmt::format(
      "{} made {} collectives than {} in `{}` ({}): `{}` ({}) decides which iterations call one",
      said(parting.odd.ranks), explanation.loop->ours_left ? "fewer" : "more",
      said(parting.rest.ranks), explanation.loop->header, line_of(explanation.loop->where),
      base::elide(filter.condition, kLongestStatement), line_of(filter.where));
  finding.fix =
      filter.condition.find(".grad") != std::string::npos
          ? "Call it for every parameter, with zeros where the gradient is None (p.grad = "
            "torch.zeros_like(p))."
          : "Call it in every iteration, with a zero where a value is missing; or gather the names "
            "first (all_gather_object) and loop over their union.";
  finding.locations.push_back(location(filter.where, {}, "decides which iterations call it"));
  const bool fewer = explanation.loop->ours_left;
  add_outcomes_of(job,
                  {.decision = filter.where,
                   .condition = filter.condition,
                   .reached = found.call,
                   .there = fewer ? &parting.rest.ranks : &parting.odd.ranks,
                   .others = fewer ? &parting.odd.ranks : &parting.rest.ranks},
                  finding);
}

void tell(const model::JobModel& job, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  if (explanation.loop->header.find("sync_dist") != std::string::npos) {
    tell_logged(explanation, finding);
    return;
  }
  const bool fewer = explanation.loop->ours_left;
  if (explanation.loop->header.find("for ") == std::string::npos) {
    finding.summary = fmt::format(
        "{} made {} collectives than {} in one call of `{}` ({}): one for each element of its "
        "argument",
        said(parting.odd.ranks), fewer ? "fewer" : "more", said(parting.rest.ranks),
        base::elide(explanation.loop->header, kLongestStatement), line_of(explanation.loop->where));
    finding.fix =
        "Pass the same number of elements on every rank, with a zero where a value is missing.";
    finding.locations.push_back(
        location(explanation.loop->where, {}, "the number of elements differs between ranks"));
    return;
  }
  if (const auto filter = filter_of(job, explanation)) {
    tell_filter(job, explanation, *filter, finding);
    return;
  }
  const Side& in_loop = explanation.loop->ours_left ? parting.rest : parting.odd;
  const std::string& operation = in_loop.operation;
  finding.summary = fmt::format(
      "{} ran {} iterations of `{}` ({}) than {}; each iteration calls {}", said(parting.odd.ranks),
      fewer ? "fewer" : "more", explanation.loop->header, line_of(explanation.loop->where),
      said(parting.rest.ranks), operation.empty() ? "a collective" : operation);
  finding.fix =
      "Loop over the same keys on every rank: gather the names first (all_gather_object) and loop "
      "over their sorted union, or reduce one stacked tensor.";
  finding.locations.push_back(
      location(explanation.loop->where, {}, "this loop has different lengths on the ranks"));
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kCount, "collective-count",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination.job, explanation, finding);
                                    });
  return findings.empty() ? unseen_findings(examination, "collective-count") : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: one rank is in an all_reduce inside a loop over names; the others have left that loop, or one rank has left it
and the others are in it.

Why: the loop goes over the keys of a dictionary or the elements of a list that differ between ranks: a loss that only some
batches have, metrics of classes that were seen. Each iteration is a collective, so the counts must be equal.

How ddpdoctor knows: some ranks wait in a loop of your source over keys, names, tensors or losses; the other ranks have left this
loop.

Fix: loop over the same keys in the same order on every rank.

    -    for name in sorted(losses):
    -        dist.all_reduce(losses[name])
    +    for name in LOSS_NAMES:
    +        dist.all_reduce(losses.get(name, torch.zeros(1)))
)";

}  // namespace

extern const Detector detector;
const Detector detector = {
    .kind = "collective-count",
    .title = "Ranks call a different number of collectives in a loop over keys",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors::collective_count
