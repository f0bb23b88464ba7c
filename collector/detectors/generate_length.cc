// SPDX-License-Identifier: Apache-2.0
// generate() on sharded parameters ends at different lengths: the ranks that continue gather
// parameters, the finished ones do not.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/generation.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/feedback.h"

namespace ddpdoctor::detectors::generate_length {
namespace {

const Side& generating(const graph::Examination& examination, const Parting& parting) {
  return is_generating(examination, parting.odd) ? parting.odd : parting.rest;
}

std::string fix(const graph::Examination& examination, const Explanation& explanation) {
  if (!own_generation_line(examination, generating(examination, explanation.parting))) {
    return "Pass synced_gpus=True to generate(), or generate a fixed length on every rank.";
  }
  return explanation.branch
             ? fmt::format(
                   "all_reduce the value behind {}, and generate on every rank while any rank is "
                   "not finished.",
                   conditions_placed(*explanation.branch))
             : "all_reduce an unfinished flag and generate on every rank while any rank has it, or "
               "generate a fixed length on every rank.";
}

/// The line in the user's own generate() comes first, because it must be changed.
void put_generating_side_first(const graph::Examination& examination, const Parting& parting,
                               Finding& finding) {
  const Side& inside = generating(examination, parting);
  const auto line = own_generation_line(examination, inside);
  if (line) {
    const model::Rank rank =
        inside.standing == nullptr ? inside.ranks.front() : inside.standing->rank;
    finding.locations.insert(
        finding.locations.begin(),
        location(*line, {rank}, fmt::format("rank {} is still generating here", rank)));
  }
}

/// The tests that can end the user's own loop, if none of them is known to separate the ranks.
void add_tests_that_end_it(const graph::Examination& examination, const Explanation& explanation,
                           Finding& finding) {
  constexpr std::size_t kMostTests = 2;
  const auto line =
      explanation.branch
          ? std::nullopt
          : own_generation_line(examination, generating(examination, explanation.parting));
  if (!line) {
    return;
  }
  std::size_t told = 0;
  for (const program::Block& test :
       program::loop_exits(lines_of(examination.job, line->file), line->line)) {
    if (++told <= kMostTests) {
      finding.locations.push_back(
          location({.file = line->file, .line = test.line, .function = line->function}, {},
                   "ends the generation of a rank"));
    }
  }
}

/// The user's own loop, which the other side has left.
void add_loop(const graph::Examination& examination, const Parting& parting, Finding& finding) {
  const Side& inside = generating(examination, parting);
  const Side& left = &inside == &parting.odd ? parting.rest : parting.odd;
  const auto line = own_generation_line(examination, inside);
  const auto loop = line ? program::feedback_loop(lines_of(examination.job, line->file), line->line)
                         : std::nullopt;
  if (!loop || is_generating(examination, left)) {
    return;
  }
  const model::CallSite where{.file = line->file, .line = loop->line, .function = line->function};
  finding.locations.push_back(location(where, {}, "generates a token in each iteration"));
  if (finding.confidence != Confidence::kPossible) {
    add_loop_outcome(
        examination.job,
        {.loop = where, .header = loop->condition, .left = &left.ranks, .inside = &inside.ranks},
        finding);
  }
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(
      examination, Cause::kGenerate, "generate-length",
      [&](const Explanation& explanation, Finding& finding) {
        const Parting& parting = explanation.parting;
        finding.summary = fmt::format("{} generated a different number of tokens than {}; {} in {}",
                                      said(parting.odd.ranks), said(parting.rest.ranks),
                                      ranks_do(parting.rest.ranks, "is waiting", "are waiting"),
                                      waiting_call(examination, explanation));
        finding.fix = fix(examination, explanation);
        put_generating_side_first(examination, parting, finding);
        add_tests_that_end_it(examination, explanation, finding);
        add_loop(examination, parting, finding);
      });
  return findings.empty() ? unseen_findings(examination, "generate-length") : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks are in generate(), in a gather of parameters; the others have returned from generate() and are in the
next collective.

Why: with sharded parameters every forward calls a collective. Each rank stops generating when its own sequences end.

How ddpdoctor knows: among the ranks that diverge, only some have a frame of generate() on their stack; or only some are in a loop of
your own that passes the output of a sharded module to the same module in the next iteration and that a condition ends.

Fix:

    -    model.generate(**inputs)
    +    model.generate(**inputs, synced_gpus=True)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "generate-length",
                           .title = "Generation ended at different lengths on sharded parameters",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::generate_length
