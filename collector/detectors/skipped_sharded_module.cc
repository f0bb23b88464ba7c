// SPDX-License-Identifier: Apache-2.0
// A sharded unit (FSDP, ZeRO-3) runs on some ranks only: they gather its parameters, and the others
// never join.
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/told_differences.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/origin/yields.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"

namespace ddpdoctor::detectors::skipped_sharded_module {
namespace {

constexpr int kDeepestGenerator = 2;
constexpr std::size_t kMostCalls = 64;  // of a rank, newest first: the modules of a step

/// A test before a module that each rank answers by itself.
struct OwnChoice {
  model::CallSite where;
  std::string_view by;  // "random state"
};

/// A condition around the line, or before the yields of the user's generator that a loop around the
/// line goes over: it yields only some of the modules.
std::optional<OwnChoice> own_test_before(const model::JobModel& job,
                                         const program::SourceText& lines,
                                         const model::CallSite& site, int depth = 0) {
  for (const program::Block& block : program::deciding_branches(lines, site.line)) {
    const model::CallSite where{.file = site.file, .line = block.line, .function = site.function};
    const auto source =
        is_loop(block) ? program::Source::kUnknown
                       : origin_of(job, Test{.where = where, .condition = block.condition}).source;
    if (is_each_ranks_own(source)) {
      return OwnChoice{.where = where, .by = decider(source)};
    }
  }
  for (const program::Block& block : program::enclosing(lines, site.line)) {
    const auto yields = is_loop(block) && depth < kDeepestGenerator
                            ? program::yields_behind(lines, block.line, job.sources)
                            : std::vector<program::Yield>{};
    for (const program::Yield& yield : yields) {
      if (auto choice = own_test_before(
              job, *yield.text,
              {.file = *yield.file, .line = yield.line, .function = yield.function}, depth + 1)) {
        return choice;
      }
    }
  }
  return std::nullopt;
}

/// Around the lines on which the ranks gathered parameters of late.
std::optional<OwnChoice> own_choice(const graph::Examination& examination, const Parting& parting) {
  std::set<model::CallSite> asked;
  for (const Side* side : {&parting.odd, &parting.rest}) {
    const auto& calls = examination.history.calls(parting.group, side->ranks.front());
    const std::size_t first = calls.size() > kMostCalls ? calls.size() - kMostCalls : 0;
    for (std::size_t i = calls.size(); i > first; --i) {
      for (const model::CallSite& site : graph::callers_of(*calls[i - 1])) {
        if (!asked.insert(site).second) {
          continue;
        }
        if (auto choice =
                own_test_before(examination.job, lines_of(examination.job, site.file), site)) {
          return choice;
        }
      }
    }
  }
  return std::nullopt;
}

void tell_choice(const OwnChoice& choice, Finding& finding) {
  finding.summary += fmt::format("; each rank decides by its own {} ({}) which modules run",
                                 choice.by, line_of(choice.where));
  finding.locations.insert(
      finding.locations.begin(),
      location(choice.where, {}, fmt::format("the {} of each rank decides here", choice.by)));
  finding.fix = fmt::format(
      "Make the decision at {} the same on all ranks: draw from a generator with one seed for all, "
      "or broadcast the "
      "decision of rank 0.",
      line_of(choice.where));
}

/// Only a log is known: FSDP and ZeRO-3 compare what the ranks gather.
Findings compared_by_library(const graph::Examination& examination) {
  const ToldDifference difference = told_difference(examination.job, "skipped-sharded-module");
  const ToldSides sides = sides_of(difference);
  if (sides.odd.empty()) {
    return {};
  }
  Finding finding = finding_of(examination, difference, sides, "skipped-sharded-module");
  const bool ids = sides.odd_value.starts_with('[');
  constexpr std::size_t kLongest = 60;
  finding.summary =
      fmt::format("the sharded modules that ran differ: {} {}{}, but {} {}{}",
                  ranks_do(sides.odd, "gathers", "gather"), ids ? "the parameters " : "",
                  base::elide(sides.odd_value, kLongest), ranks_do(sides.rest, "gathers", "gather"),
                  ids ? "the parameters " : "", base::elide(sides.rest_value, kLongest));
  finding.fix =
      "Run the same modules in the same order on every rank. If a batch has no input for one, use "
      "a "
      "dummy input and add 0 * output to the loss.";
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(
      examination, Cause::kSharded, "skipped-sharded-module",
      [&](const Explanation& explanation, Finding& finding) {
        const Parting& parting = explanation.parting;
        finding.summary =
            fmt::format("{} skipped a sharded module; {} gathering its parameters ({})",
                        said(parting.odd.ranks), ranks_do(parting.rest.ranks, "is", "are"),
                        waiting_call(examination, explanation));
        finding.fix = fmt::format(
            "Run the module ({}) on every rank. If a batch has no input for it, use a dummy input "
            "and add 0 * output to the loss.",
            line_of(parting.rest.site()));
        if (const auto choice = own_choice(examination, parting)) {
          tell_choice(*choice, finding);
        }
      });
  return findings.empty() ? compared_by_library(examination) : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks are in an all_gather inside FSDP or ZeRO-3 before a module's forward; the others are in another module, in
the loss or in backward.

Why: a sharded module gathers its parameters from all ranks each time it runs. If the batch of a rank has no image, or no token for an
expert, and this rank skips the module, the others wait for its shard.

How ddpdoctor knows: the waiting ranks are in the gather of a sharded module, on a line that the remaining ranks have skipped.

Fix: run it in every step.

    -    if images is not None:
    -        h = h + self.vision(images)
    +    pixels = images if images is not None else self.dummy
    +    h = h + self.vision(pixels) * float(images is not None)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "skipped-sharded-module",
                           .title = "A sharded module ran on some ranks only",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::skipped_sharded_module
