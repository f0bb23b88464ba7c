// SPDX-License-Identifier: Apache-2.0
// shm-exhausted: /dev/shm is full (Docker's default is 64 MB). Workers die with a bus error or wait
// for space, NCCL fails at start.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_shm_size.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::shm_exhausted {
namespace {

constexpr std::string_view kKind = "shm-exhausted";
// Share of /dev/shm; a batch of images needs more than the rest.
constexpr double kFullShare = 0.97;
constexpr int kBusError = 7;
constexpr std::string_view kFix =
    "Give the container more shared memory (--shm-size=8g or --ipc=host), or lower num_workers. "
    "`ddpdoctor clean` removes leaked segments.";

/// Processes of the job killed by a bus error: a write into a mapping that could not be backed.
std::vector<const model::Process*> killed_by_bus_error(const model::JobModel& job) {
  std::vector<const model::Process*> out;
  for (const model::Process* process : processes(job)) {
    const auto exit = exit_of(job, *process);
    if (exit && exit->signal == kBusError) {
      out.push_back(process);
    }
  }
  return out;
}

double used_bytes(const model::Fact& usage) {
  const double total = usage.number("bytes_total").value_or(0);
  const auto used = usage.number("bytes_used");
  return used ? *used : std::max(0.0, total - usage.number("bytes_free").value_or(total));
}

bool says_bus_error(const model::JobModel& job) {
  return std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("Bus error") != std::string::npos ||
           log.text.find("SIGBUS") != std::string::npos;
  });
}

bool is_full(const model::Fact& usage) {
  const double total = usage.number("bytes_total").value_or(0);
  return total > 0 && used_bytes(usage) >= kFullShare * total;
}

/// Processes killed by a bus error had segments mapped: a page could not be allocated, or the file
/// was truncated. That there was no room is then not proven.
Findings died_in_a_mapping(const graph::Examination& examination) {
  Findings findings;
  for (const model::Process* process : killed_by_bus_error(examination.job)) {
    for (const model::Fact* mapped : model::facts(examination.job, "shm-mapped")) {
      if (mapped->pid != process->pid) {
        continue;
      }
      Finding finding;
      finding.kind = kKind;
      finding.confidence = Confidence::kLikely;
      const auto rank = served_rank(examination.job, *process);
      if (rank) {
        finding.culprits.insert(*rank);
      }
      const std::string path = mapped->text("path").value_or("/dev/shm");
      finding.summary = fmt::format(
          "process {} was killed by SIGBUS; it had {} of shared memory mapped, most of it {}",
          process->pid, base::bytes(mapped->number("bytes").value_or(0)), path);
      finding.fix = kFix;
      finding.details["path"] = path;
      add_waiting(examination, finding);
      findings.push_back(std::move(finding));
      break;
    }
  }
  return findings;
}

/// Shared memory that could not be allocated, as seen by the agent.
Findings refused_segments(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Fact* failure : model::facts(examination.job, "shm-failure")) {
    const int error = static_cast<int>(failure->number("errno").value_or(0));
    auto suspect =
        error == ENOSPC || error == ENOMEM ? suspect_of(examination, *failure) : std::nullopt;
    if (!suspect) {
      continue;
    }
    const double size = failure->number("bytes").value_or(0);
    suspect->note = fmt::format("process {} requested it here", suspect->process->pid);
    suspect->evidence = fmt::format("process {} had no room for {}{}", suspect->process->pid,
                                    failure->text("path").value_or("a segment"),
                                    size > 0 ? " of " + base::bytes(size) : "");
    suspects.push_back(std::move(*suspect));
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary =
        fmt::format("{} had no room in shared memory{}", who(there), and_who_waits(finding));
    finding.fix = kFix;
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// A log has a bus error and the size of /dev/shm: that of a container, unless it is configured
/// otherwise.
std::optional<Finding> died_in_a_small_one(const graph::Examination& examination) {
  constexpr std::int64_t kDefault = 64 << 20;
  const auto size = says_bus_error(examination.job) ? told_shm_size(examination.job) : std::nullopt;
  if (!size || size->bytes > kDefault) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  finding.summary = fmt::format("a process died of a bus error, and /dev/shm has only {}",
                                base::bytes(static_cast<double>(size->bytes)));
  finding.fix = kFix;
  finding.evidence.push_back({.rank = {}, .text = "log: " + size->line});
  add_waiting(examination, finding);
  return finding;
}

/// A dying worker reports it without its rank; the rank that lost the worker is the culprit.
void add_who_lost_a_worker(const graph::Examination& examination, Finding& finding) {
  if (!finding.culprits.empty() || !finding.locations.empty()) {
    return;
  }
  for (const Sighting& sighting : sightings(examination.job, "dataloader-worker-killed")) {
    if (sighting.place.known() && finding.locations.empty()) {
      const model::RankSet ranks =
          sighting.rank ? model::RankSet{*sighting.rank} : model::RankSet{};
      finding.culprits = ranks;
      finding.locations.push_back(
          location(sighting.place, ranks,
                   (ranks.empty() ? "a rank" : said(ranks)) + " lost its worker here"));
      finding.confidence = Confidence::kCertain;
      finding.summary = fmt::format("{} ran out of shared memory ({})",
                                    ranks.empty() ? "a rank" : said(ranks), place(sighting.place));
    }
  }
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  for (Finding& finding : findings) {
    add_who_lost_a_worker(examination, finding);
  }
  if (!findings.empty()) {
    return findings;
  }
  for (const model::Fact* usage : model::facts(examination.job, "shm-usage")) {
    if (!is_full(*usage)) {
      continue;
    }
    Finding finding;
    finding.kind = kKind;
    const auto dead = killed_by_bus_error(examination.job);
    for (const model::Process* process : dead) {
      if (const auto rank = served_rank(examination.job, *process)) {
        finding.culprits.insert(*rank);
      }
      finding.evidence.push_back(
          {.rank = served_rank(examination.job, *process),
           .text = fmt::format("process {} was killed by SIGBUS", process->pid)});
    }
    // A full /dev/shm alone may be another job's; a bus error in addition is a second fact.
    finding.confidence = dead.empty() && !says_bus_error(examination.job) ? Confidence::kPossible
                                                                          : Confidence::kCertain;
    const std::string path = usage->text("path").value_or("/dev/shm");
    finding.summary = fmt::format(
        "{} {} full: {} of {} used", path, usage->flag("peak").value_or(false) ? "was" : "is",
        base::bytes(used_bytes(*usage)), base::bytes(usage->number("bytes_total").value_or(0)));
    finding.fix = kFix;
    finding.details["path"] = path;
    add_waiting(examination, finding);
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings = refused_segments(examination);
  }
  findings = findings.empty() ? died_in_a_mapping(examination) : std::move(findings);
  if (auto finding = findings.empty() ? died_in_a_small_one(examination) : std::nullopt) {
    findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "/dev/shm is full",
    .explanation =
        R"(What you see: "Bus error", "insufficient shared memory", workers that are killed by SIGBUS, or NCCL failing with "Error
while creating shared memory segment".

Why: DataLoader workers and NCCL exchange data through /dev/shm; containers give it 64 MB unless configured otherwise.

How ddpdoctor knows: the file system is full and a bus error occurred, or one of these messages was printed. A log with
a bus error and a /dev/shm of 64 MB or less is likely.

Fix:
    $ docker run --shm-size=8g ...)",
    .detect = detect,
    .specificity = kMechanism,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::shm_exhausted
