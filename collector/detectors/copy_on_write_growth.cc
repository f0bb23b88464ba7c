// SPDX-License-Identifier: Apache-2.0
// copy-on-write-growth: a dataset keeps millions of Python objects in a list; each forked worker
// touches their reference counts and so copies the pages one by one, until the memory limit kills a
// worker. The kill is what is seen; the list is the cause.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "copy-on-write-growth";
constexpr double kNearLimit = 0.9;  // of the group's memory limit
constexpr std::size_t kFewestWorkers = 2;

std::size_t forked_workers(const model::JobModel& job) {
  const auto all = processes(job);
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&job](const model::Process* process) {
        return process->role == model::Role::kDataLoaderWorker &&
               forked_without_exec(job, *process);
      }));
}

/// Killed for memory, or close to it.
const model::Fact* short_of_memory(const model::JobModel& job) {
  for (const model::Fact* memory : model::facts(job, "memory")) {
    const auto limit = memory->number("limit_bytes");
    if (memory->number("oom_kills").value_or(0) > 0 ||
        (limit && *limit > 0 && memory->number("usage_bytes").value_or(0) >= kNearLimit * *limit)) {
      return memory;
    }
  }
  return nullptr;
}

Findings detect(const graph::Examination& examination) {
  const std::size_t workers = forked_workers(examination.job);
  const model::Fact* memory = short_of_memory(examination.job);
  if (workers < kFewestWorkers || memory == nullptr) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kPossible;  // memory may be short for a hundred reasons
  add_waiting(examination, finding);
  finding.summary = fmt::format(
      "memory is short and {} forked DataLoader workers may each be copying the dataset's Python "
      "objects",
      workers);
  finding.evidence.push_back(
      {.rank = memory->rank,
       .text = fmt::format("memory group {}: {} used, {:.0f} kills",
                           memory->text("cgroup").value_or("?"),
                           base::bytes(memory->number("usage_bytes").value_or(0)),
                           memory->number("oom_kills").value_or(0))});
  finding.fix =
      "Keep samples in numpy or torch arrays (or pyarrow) instead of lists and dicts of Python "
      "objects, or lower num_workers.";
  return {std::move(finding)};
}

}  // namespace

extern const Detector copy_on_write_growth;
const Detector copy_on_write_growth{
    .kind = kKind,
    .title = "Forked workers copy the dataset's Python objects",
    .explanation =
        R"(What you see: memory grows with each step and each worker until a worker is killed; with num_workers=0 it does not.

Why: fork shares pages until somebody writes to them. Reading a Python object writes its reference count, and so copies its page.

How it is recognised: several forked DataLoader workers and a memory group at its limit. A resemblance only.

Fix:
    - self.paths = [str(p) for p in folder.iterdir()]
    + self.paths = numpy.array([str(p) for p in folder.iterdir()]))",
    .detect = detect,
    .specificity = kPlainFact,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors
