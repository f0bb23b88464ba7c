// SPDX-License-Identifier: Apache-2.0
// fork-after-cuda: CUDA was initialized, then the process forked (a DataLoader worker,
// multiprocessing). The child cannot use CUDA and raises, or hangs. torch's message says so itself.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/cuda_in_children.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fork_after_cuda {
namespace {

constexpr std::string_view kKind = "fork-after-cuda";

Findings told(const graph::Examination& examination, std::vector<Suspect> suspects) {
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format("a child process forked by {} after CUDA had started uses CUDA{}",
                                  who(there), and_who_waits(finding));
    finding.fix =
        "Start the child with the spawn or forkserver method (multiprocessing_context=\"spawn\" "
        "for a DataLoader), or keep its tensors on the CPU.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

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
  return told(examination, std::move(suspects));
}

/// In the CUDA runtime or driver, or in torch's initialization of CUDA.
bool uses_cuda(const model::Thread& thread) {
  const auto of_cuda = [](const model::Frame& frame) {
    return frame.language == model::Language::kNative &&
           (frame.module.find("libcuda") != std::string::npos ||
            frame.function.starts_with("cuda") || frame.function.starts_with("cuInit") ||
            frame.function.starts_with("cuCtx"));
  };
  return python_frame_in(thread, "torch/cuda/__init__.py", {"_lazy_init"}) != nullptr ||
         std::any_of(thread.frames.begin(), thread.frames.end(), of_cuda);
}

/// The process it was forked from: according to the fact, else its parent.
pid_t forked_from(const model::JobModel& job, const model::Process& child) {
  for (const model::Fact* fork : model::facts(job, "fork")) {
    if (fork->pid == child.pid) {
      return pid_field(*fork, "parent_pid").value_or(child.ppid);
    }
  }
  return child.ppid;
}

/// Its parent has a context: by pid, or by the served rank if the context names no process.
bool parent_has_context(const model::JobModel& job, const model::Process& child) {
  const pid_t parent = forked_from(job, child);
  const auto rank = served_rank(job, child);
  const auto contexts = model::facts(job, "cuda-context");
  return std::any_of(contexts.begin(), contexts.end(), [&](const model::Fact* context) {
    return context->pid ? parent > 0 && *context->pid == parent : rank && context->rank == rank;
  });
}

Findings from_stacks(const graph::Examination& examination) {
  const auto still = stuck(examination);
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    const model::Thread* main = model::main_thread(*process);
    if (!still || !alive(*process) || main == nullptr || !uses_cuda(*main) ||
        process->role == model::Role::kRank || !forked_without_exec(examination.job, *process) ||
        !parent_has_context(examination.job, *process)) {
      continue;
    }
    const pid_t parent = forked_from(examination.job, *process);
    Suspect suspect = suspect_in(examination, *process, main);
    if (const model::Process* from = model::process(examination.job, parent);
        !suspect.rank && from != nullptr) {
      suspect.rank = served_rank(examination.job, *from);
    }
    suspect.confidence = *still;
    suspect.note = "a forked child uses CUDA here";
    suspect.evidence = fmt::format(
        "process {} was forked without exec from process {}, which has a CUDA context, and is in a "
        "call of CUDA",
        process->pid, parent);
    suspects.push_back(std::move(suspect));
  }
  return told(examination, std::move(suspects));
}

/// CUDA itself answered so in a child: only a log shows it.
Findings failed_in_child(const graph::Examination& examination) {
  Findings findings;
  FailedChildren failed = cuda_failed_in_children(examination);
  for (const auto& there : by_place(std::move(failed.suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format(
        "{}{} used CUDA after a fork and failed{}{}", failed.subject,
        finding.culprits.empty() ? std::string() : fmt::format(" of {}", said(finding.culprits)),
        placed(there.front().place), and_who_waits(finding));
    finding.fix =
        "Keep the dataset's tensors on the CPU, or start workers with "
        "multiprocessing_context=\"spawn\". A CUDA tensor that a worker inherits fails even when "
        "it is freed.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  if (findings.empty() && !examination.job.logs.empty() && !outlived(examination, std::nullopt)) {
    findings = failed_in_child(examination);
  }
  if (findings.empty()) {
    findings = used_in_child(examination);
  }
  return findings.empty() ? from_stacks(examination) : findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "CUDA was started before a fork",
    .explanation =
        R"(What you see: "Cannot re-initialize CUDA in forked subprocess" from a DataLoader worker or another child; its rank and the
other ranks then wait or fail.

Why: a CUDA context does not survive fork.

How ddpdoctor knows: from torch's message, with your line in its traceback; from "CUDA error: initialization error" of a DataLoader
worker or another forked child in a log; or because a forked child is in a CUDA call and its parent has a context; under ddpdoctor run also from the order of the CUDA calls and the fork.

Fix:
    - loader = DataLoader(dataset, num_workers=4)
    + loader = DataLoader(dataset, num_workers=4, multiprocessing_context="spawn")
or keep tensors on the CPU in the dataset.)",
    .detect = detect,
    .specificity = kMechanism,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::fork_after_cuda
