// SPDX-License-Identifier: Apache-2.0
// One rank compiles (torch.compile, Triton, nvcc) while the others wait for it in a collective:
// slow, not hung.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::compile_skew {
namespace {

bool compiles(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kCompiling;
}

/// In dumps without native frames, in a call that no frame names: at the same line in two
/// snapshots, or at a later line than the one that compiles. All ranks must be one or the other.
model::RankSet held_by_the_compiler(const graph::Examination& examination,
                                    const model::RankSet& compiling) {
  const graph::Standing* slow =
      compiling.empty() ? nullptr : examination.standing(compiling.front());
  const model::RankSet past =
      ranks_where(examination, [&examination, slow](const graph::Standing& one) {
        const bool unnamed = one.activity == graph::Activity::kComputing ||
                             one.activity == graph::Activity::kUnknown ||
                             one.activity == graph::Activity::kGpu;
        if (slow == nullptr || slow->thread == nullptr || !unnamed || one.moved ||
            one.process == nullptr || one.thread == nullptr || !model::was_dumped(*one.process)) {
          return false;
        }
        if (slow->moved && examination.job.observations.size() > 1) {
          return true;
        }
        const auto fork = fork_of(python_path(*one.thread), python_path(*slow->thread));
        return fork && same_function(fork->ours, fork->theirs) &&
               fork->ours.line > fork->theirs.line && fork->below_ours.empty();
      });
  const bool all = past.size() + compiling.size() == examination.standings.size();
  return all && !examination.job.ended ? past : model::RankSet{};
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet compiling = ranks_where(examination, compiles);
  model::RankSet waiting = waiting_ranks(examination);
  if (waiting.empty()) {
    waiting = held_by_the_compiler(examination, compiling);
  }
  if (compiling.empty() || waiting.empty()) {
    return {};
  }
  const graph::Standing* standing = examination.standing(compiling.front());
  Finding finding;
  finding.kind = "compile-skew";
  finding.confidence = Confidence::kPossible;  // a running compiler is slow, not hung
  finding.culprits = compiling;
  finding.waiting = waiting;
  finding.summary =
      fmt::format("{} {} compiling ({}) while {} wait{}", said(compiling), is_or_are(compiling),
                  place(standing->user), said(waiting), waiting.size() == 1 ? "s" : "");
  finding.fix =
      "Warm up on all ranks before the timed part, and keep shapes static. Share the compile cache "
      "(TORCHINDUCTOR_CACHE_DIR on a common folder).";
  finding.locations.push_back(
      location(standing->user, compiling,
               fmt::format("{} {} compiling here", said(compiling), is_or_are(compiling))));
  const graph::Standing* waits = examination.standing(waiting.front());
  if (waits->user.known()) {
    finding.locations.push_back(
        location(waits->user, waiting, waiting_here(examination.job, waiting)));
  }
  add_whereabouts(finding, examination, compiling);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: some ranks wait in a collective while one is busy for minutes; timeouts may end the job.

Why: the first run of a compiled function, a new shape, or a cold cache on one node makes one rank compile alone.

How ddpdoctor knows: some ranks have frames of dynamo, inductor, Triton or a C++ extension build, and the others are in a collective.

Fix: compile on all ranks at the same time, with static shapes and a shared cache; raise the timeout for the first step.

    -    model = torch.compile(model, dynamic=None)
    +    model = torch.compile(model, dynamic=False)
    $ export TORCHINDUCTOR_CACHE_DIR=/a/folder/of/all/ranks
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "compile-skew",
                           .title = "One rank compiles while the others wait",
                           .explanation = kExplanation,
                           .detect = detect,
                           .effect = Effect::kSlow};

}  // namespace ddpdoctor::detectors::compile_skew
