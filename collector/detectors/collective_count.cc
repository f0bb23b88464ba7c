// SPDX-License-Identifier: Apache-2.0
// Ranks loop over different keys or lists and make one collective for each: one of them goes round
// once more.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestStatement = 80;

/// Not a loop of the source: a statement that logs values which the ranks reduce together.
void tell_logged(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.summary = fmt::format(
      "{} {} logged values that {} did not log there, and each logged with sync_dist=True is a "
      "collective: see `{}` ({})",
      said(parting.odd.ranks), parting.odd.ranks.size() == 1 ? "reduces" : "reduce",
      said(parting.rest.ranks), base::elide(explanation.loop->header, kLongestStatement),
      place(explanation.loop->where));
  finding.fix =
      "Log the same names on every rank, with a zero where there is nothing, or log without "
      "sync_dist and reduce one stacked tensor.";
  // Before the line that started the trainer, at which all ranks stand.
  finding.locations.insert(
      finding.locations.begin(),
      location(explanation.loop->where, parting.odd.ranks, "logs values that all ranks reduce"));
}

/// `if p.grad is not None:` between the loop and the call of those who are in it.
std::optional<Test> filter_of(const model::JobModel& job, const Explanation& explanation) {
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
      return Test{.where = where, .condition = block.condition};
    }
  }
  return std::nullopt;
}

/// The loop is as long on all ranks, for all that is known: what it leaves out differs.
void tell_filter(const Explanation& explanation, const Test& filter, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} made {} collectives than {} in the loop `{}` ({}): `{}` ({}) decides which rounds make "
      "one",
      said(parting.odd.ranks), explanation.loop->ours_left ? "fewer" : "more",
      said(parting.rest.ranks), explanation.loop->header, place(explanation.loop->where),
      base::elide(filter.condition, kLongestStatement), place(filter.where));
  finding.fix =
      filter.condition.find(".grad") != std::string::npos
          ? "Make the call for every parameter, with zeros where one has no gradient (p.grad = "
            "torch.zeros_like(p))."
          : "Make the call in every round, with a zero where there is nothing to reduce, or agree "
            "first which rounds make it (all_gather_object of the names).";
  finding.locations.push_back(
      location(filter.where, {}, "decides which rounds make the collective"));
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
        "{} made {} collectives than {} in one execution of `{}` ({}): one for each element of "
        "what "
        "it is given",
        said(parting.odd.ranks), fewer ? "fewer" : "more", said(parting.rest.ranks),
        base::elide(explanation.loop->header, kLongestStatement), place(explanation.loop->where));
    finding.fix =
        "Give it as many elements on every rank, with a zero where there is nothing to reduce.";
    finding.locations.push_back(
        location(explanation.loop->where, {}, "given another number of elements"));
    return;
  }
  if (const auto filter = filter_of(job, explanation)) {
    tell_filter(explanation, *filter, finding);
    return;
  }
  finding.summary = fmt::format(
      "{} went round the loop `{}` ({}) {} often than {}, with one collective each time",
      said(parting.odd.ranks), explanation.loop->header, place(explanation.loop->where),
      fewer ? "less" : "more", said(parting.rest.ranks));
  finding.fix =
      "Agree on the keys first (all_gather_object of the names, then loop over the sorted union), "
      "or reduce one stacked tensor.";
  finding.locations.push_back(
      location(explanation.loop->where, {}, "the loop that has another length"));
}

Findings detect(const graph::Examination& examination) {
  return findings_with(examination, Cause::kCount, "collective-count",
                       [&](const Explanation& explanation, Finding& finding) {
                         tell(examination.job, explanation, finding);
                       });
}

constexpr std::string_view kExplanation =
    R"(What you see: one rank is in an all_reduce inside a loop over names, the others are behind that loop (or the other way round).

Why: the loop goes over the keys of a dictionary or the elements of a list that differ between ranks: a loss that only some
batches have, metrics of classes that were seen. Each round is a collective, so the counts must be equal.

How it is recognised: one side waits in a loop of your source that goes over keys, names, tensors or losses; the other side has left it.

The fix: the same keys in the same order everywhere.

    -    for name in sorted(losses):
    -        dist.all_reduce(losses[name])
    +    for name in LOSS_NAMES:
    +        dist.all_reduce(losses.get(name, torch.zeros(1)))
)";

}  // namespace

extern const Detector collective_count;
const Detector collective_count = {
    .kind = "collective-count",
    .title = "Ranks make a different number of collectives in a loop over keys",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors
