// SPDX-License-Identifier: Apache-2.0
// shm-leaked: segments in /dev/shm whose maker is dead and that nobody maps: memory that stays in
// use until somebody removes it. With the file_system strategy a killed job leaves them behind.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "shm-leaked";
constexpr double kMinutesOld = 60;  // younger ones may be on their way from one process to another
constexpr std::size_t kMostPaths = 20;  // in details; the rest is counted

/// Left by some job: that nobody maps it is only known of this job's processes; that its maker is
/// gone is a second fact.
bool is_leaked(const model::Fact& segment) {
  return segment.flag("creator_alive") == false && segment.flag("in_use") == false &&
         segment.number("age_seconds").value_or(0) >= kMinutesOld;
}

/// This job was seen to make it; the job has ended, the file is there, and nobody uses it.
bool is_left_by_us(const model::Fact& segment) {
  return segment.flag("left_behind") == true;
}

/// How many, how large, which.
struct Pile {
  std::size_t count = 0;
  double bytes = 0;
  std::vector<std::string> paths;

  void add(const model::Fact& segment) {
    ++count;
    bytes += segment.number("bytes").value_or(0);
    if (paths.size() < kMostPaths) {
      paths.push_back(segment.text("path").value_or("?"));
    }
  }

  [[nodiscard]] std::string said() const {
    return fmt::format("{} shared memory segment{} ({})", count, count == 1 ? "" : "s",
                       base::bytes(bytes));
  }
};

Findings left_by_others(const graph::Examination& examination) {
  Pile pile;
  for (const model::Fact* segment : model::facts(examination.job, "shm-segment")) {
    if (is_leaked(*segment)) {
      pile.add(*segment);
    }
  }
  if (pile.count == 0) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kPossible;
  finding.summary = fmt::format("{} {} left behind by processes that are gone", pile.said(),
                                pile.count == 1 ? "was" : "were");
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("{}: its maker is dead and no process of this job maps it",
                           pile.paths.front())});
  finding.fix =
      "ddpdoctor clean lists them with their owners and removes them; use the file_descriptor "
      "sharing strategy with a higher ulimit -n.";
  finding.details["paths"] = pile.paths;
  return {std::move(finding)};
}

/// Who made `segment`, and where.
std::optional<Suspect> maker(const graph::Examination& examination, const model::Fact& segment) {
  const auto* process = segment.pid ? model::process(examination.job, *segment.pid) : nullptr;
  if (process == nullptr) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *process, nullptr);
  if (const model::CallSite place = recorded_place(segment); place.known()) {
    suspect.place = place;
  }
  suspect.confidence = Confidence::kLikely;
  suspect.note = fmt::format("process {} made it here", process->pid);
  suspect.evidence = fmt::format(
      "{} ({}) is still there: process {} made it, nobody removed it, and no live process maps it",
      segment.text("path").value_or("?"), base::bytes(segment.number("bytes").value_or(0)),
      process->pid);
  return suspect;
}

/// One finding for all of them: the place that left the first leads.
Findings left_by_this_job(const graph::Examination& examination) {
  Pile pile;
  std::vector<Suspect> makers;
  for (const model::Fact* segment : model::facts(examination.job, "shm-segment")) {
    auto suspect = is_left_by_us(*segment) ? maker(examination, *segment) : std::nullopt;
    if (suspect) {
      pile.add(*segment);
      makers.push_back(std::move(*suspect));
    }
  }
  if (makers.empty()) {
    return {};
  }
  Finding finding = accuse(examination, kKind, makers);
  finding.summary = fmt::format("the job has ended and left {} in /dev/shm: {} made {}",
                                pile.said(), who(makers), pile.count == 1 ? "it" : "them");
  finding.fix = fmt::format(
      "Call unlink() once, in the process that made the segment, also when it fails (finally: or "
      "atexit); free it now: rm {}",
      pile.paths.front());
  finding.details["paths"] = pile.paths;
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  Findings findings = left_by_this_job(examination);
  return findings.empty() ? left_by_others(examination) : findings;
}

}  // namespace

extern const Detector shm_leaked;
const Detector shm_leaked{
    .kind = kKind,
    .title = "Shared memory was left behind",
    .explanation =
        R"(What you see: /dev/shm fills up from run to run; torch_PID_… files whose process is gone.

Why: under the file_system sharing strategy segments are files with names; a killed process cannot remove them.

How it is recognised: the maker's pid in the name belongs to no live process, and no process of the job maps the file. Under run: a segment that
the job made is still there when the job has ended, and nobody uses it.

Fix:
    $ ddpdoctor clean
    - torch.multiprocessing.set_sharing_strategy("file_system")
    + finally:
    +     segment.close()
    +     if local_rank == 0: segment.unlink())",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors
