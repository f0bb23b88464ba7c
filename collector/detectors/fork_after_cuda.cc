// SPDX-License-Identifier: Apache-2.0
// fork-after-cuda: CUDA was initialised, then the process forked (a DataLoader worker,
// multiprocessing); the child may not use CUDA and raises, or hangs. The message of torch says so
// itself.
#include <fmt/format.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/known_exceptions.h"
#include "collector/detectors/processes.h"
#include "collector/detectors/recorded_place.h"
#include "collector/detectors/suspects.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "fork-after-cuda";

/// The agent saw the parent start CUDA, then the fork, then the child's own call.
Findings used_in_child(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Fact* fork : model::facts(examination.job, "cuda-fork")) {
    auto suspect =
        fork->flag("used").value_or(false) ? suspect_of(examination, *fork) : std::nullopt;
    if (!suspect) {
      continue;
    }
    const pid_t pid = suspect->process->pid;
    suspect->note = fmt::format("process {} uses CUDA here", pid);
    suspect->evidence =
        fmt::format("process {} called {}; process {} had started CUDA before it forked it", pid,
                    fork->text("call").value_or("CUDA"), fork->number("parent_pid").value_or(0));
    suspects.push_back(std::move(*suspect));
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format("a process that {} forked after CUDA was started uses CUDA{}",
                                  who(there), and_who_waits(finding));
    finding.fix =
        "Start the child with the spawn or forkserver method (multiprocessing_context=\"spawn\" "
        "for a DataLoader), or leave tensors on the CPU in it.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  return findings.empty() ? used_in_child(examination) : findings;
}

}  // namespace

extern const Detector fork_after_cuda;
const Detector fork_after_cuda{
    .kind = kKind,
    .title = "CUDA was started before a fork",
    .explanation =
        R"(What you see: "Cannot re-initialize CUDA in forked subprocess" from a DataLoader worker or another child; its rank and the others
wait or fail after it.

Why: a CUDA context does not survive fork.

How it is recognised: torch's message, with the user's line of its traceback; under ddpdoctor run also the order of the CUDA calls and the fork.

Fix:
    - loader = DataLoader(dataset, num_workers=4)
    + loader = DataLoader(dataset, num_workers=4, multiprocessing_context="spawn")
or keep tensors on the CPU in the dataset.)",
    .detect = detect,
    .specificity = kMechanism,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors
