// SPDX-License-Identifier: Apache-2.0
// copy-on-write-growth: a dataset keeps millions of Python objects in a list; each forked worker
// changes their reference counts and so copies the pages one by one, until the memory limit kills a
// worker. The kill is visible; the list is the cause.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::copy_on_write_growth {
namespace {

constexpr std::string_view kKind = "copy-on-write-growth";
constexpr double kNearLimit = 0.9;  // share of the group's memory limit
constexpr std::size_t kFewestWorkers = 2;
constexpr double kWorthIt =
    1 << 20;  // bytes copied between two snapshots; an idle worker copies less
constexpr std::string_view kFix =
    "Keep samples in numpy or torch arrays (or pyarrow) instead of lists and dicts of Python "
    "objects, or lower num_workers.";

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

/// Workers seen copying, and what all of them together may still copy.
struct Copying {
  std::vector<const model::Process*> workers;
  double per_second = 0;
  double left = 0;
  double room = 0;
};

Copying copying(const model::JobModel& job) {
  Copying out;
  double shared = 0;
  for (const model::Fact* memory : model::facts(job, "worker-memory")) {
    const model::Process* worker = memory->pid ? model::process(job, *memory->pid) : nullptr;
    const double copied = memory->number("copied_bytes").value_or(0);
    if (worker == nullptr || copied < kWorthIt) {
      continue;
    }
    out.workers.push_back(worker);
    out.per_second += copied / std::max(memory->number("over_seconds").value_or(1), 0.001);
    shared += memory->number("shared_bytes").value_or(0);
    out.room = memory->number("room_bytes").value_or(0);
  }
  const auto measured = static_cast<double>(out.workers.size());
  const auto all = static_cast<double>(std::max(forked_workers(job), out.workers.size()));
  out.left = measured > 0 ? shared / measured * all : 0;
  return out;
}

/// Their memory grows by what they no longer share, and the free memory is not enough for all of
/// it.
Findings seen_to_copy(const graph::Examination& examination) {
  const Copying seen = copying(examination.job);
  if (examination.job.ended || seen.workers.size() < kFewestWorkers || seen.left < seen.room) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  for (const model::Process* worker : seen.workers) {
    if (const auto rank = served_rank(examination.job, *worker)) {
      finding.culprits.insert(*rank);
    }
  }
  finding.summary = fmt::format(
      "{} DataLoader workers copy {} of the dataset's Python objects per second; {} are left to "
      "copy, and {} is free",
      seen.workers.size(), base::bytes(seen.per_second), base::bytes(seen.left),
      base::bytes(seen.room));
  for (const model::Process* worker : seen.workers) {
    const model::Thread* main = model::main_thread(*worker);
    const model::Frame* frame = main == nullptr ? nullptr : own_user_frame(*main);
    if (frame != nullptr && finding.locations.empty()) {
      finding.locations.push_back(location(model::call_site(*frame), finding.culprits,
                                           fmt::format("worker {} is here", worker->pid)));
    }
    finding.evidence.push_back(
        {.rank = served_rank(examination.job, *worker),
         .text = fmt::format("worker {}: shared pages became its own between the two "
                             "snapshots",
                             worker->pid)});
  }
  finding.fix = kFix;
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  if (Findings seen = seen_to_copy(examination); !seen.empty()) {
    return seen;
  }
  const std::size_t workers = forked_workers(examination.job);
  const model::Fact* memory = short_of_memory(examination.job);
  if (workers < kFewestWorkers || memory == nullptr) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kPossible;  // memory may be short for many other reasons
  add_waiting(examination, finding);
  finding.summary = fmt::format(
      "memory is low, and {} forked DataLoader workers may each copy the Python objects of the "
      "dataset",
      workers);
  finding.evidence.push_back(
      {.rank = memory->rank,
       .text = fmt::format("cgroup {}: {} used, {:.0f} out-of-memory kills",
                           memory->text("cgroup").value_or("?"),
                           base::bytes(memory->number("usage_bytes").value_or(0)),
                           memory->number("oom_kills").value_or(0))});
  finding.fix = kFix;
  return {std::move(finding)};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Forked workers copy the dataset's Python objects",
    .explanation =
        R"(What you see: memory grows with each step and each worker until a worker is killed; with num_workers=0 it does not.

Why: fork shares pages until a process writes to them. Reading a Python object writes its reference count, and so copies its page.

How ddpdoctor knows: between two snapshots, shared pages of forked workers became private, and memory is too small for private copies
of the remaining pages (likely); or there are several forked workers and a memory cgroup at its limit (possible).

Fix:
    - self.paths = [str(p) for p in folder.iterdir()]
    + self.paths = numpy.array([str(p) for p in folder.iterdir()]))",
    .detect = detect,
    .specificity = kPlainFact,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors::copy_on_write_growth
