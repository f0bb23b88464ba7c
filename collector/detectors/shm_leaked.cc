// SPDX-License-Identifier: Apache-2.0
// shm-leaked: segments in /dev/shm that this job created and left behind: memory that stays in use
// until it is removed. Segments of earlier jobs count only if there is hardly any room left.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/kept_batches.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/left_segments.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::shm_leaked {
namespace {

constexpr std::string_view kKind = "shm-leaked";
constexpr double kFewestMoments = 4;  // one moment per batch, and a loop holds two batches
constexpr double kLongerThanAStep = 3;
constexpr double kNever = 1e9;
/// This job created it; the job has ended, the file exists, and no process uses it.
bool is_left_by_us(const model::Fact& segment) {
  return segment.flag("left_behind") == true;
}

/// A nearly full file system concerns this job, too; otherwise it is a note
/// (model/left_segments.h).
Findings left_by_others(const graph::Examination& examination) {
  const model::SegmentPile pile = model::left_by_others(examination.job);
  if (pile.count == 0 || !model::shm_is_nearly_full(examination.job)) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kPossible;
  finding.summary =
      fmt::format("/dev/shm is nearly full, and {} {} left there by processes that have exited",
                  pile.said(), pile.count == 1 ? "was" : "were");
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format(
           "{}: the process that created it has exited, and no process of this job maps it",
           pile.paths.front())});
  finding.fix =
      "Run `ddpdoctor clean`: it lists them with their owners and removes them. Or use the "
      "file_descriptor sharing strategy with a higher `ulimit -n`.";
  finding.details["paths"] = pile.paths;
  return {std::move(finding)};
}

/// The process that created `segment`, and the line.
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
  suspect.note = fmt::format("process {} created it here", process->pid);
  suspect.evidence = fmt::format(
      "{} ({}) still exists: process {} created it, no process removed it, and no running process "
      "maps it",
      segment.text("path").value_or("?"), base::bytes(segment.number("bytes").value_or(0)),
      process->pid);
  return suspect;
}

/// One finding for all of them: the line that left the first one leads.
Findings left_by_this_job(const graph::Examination& examination) {
  model::SegmentPile pile;
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
  finding.summary = fmt::format("the job exited and left {} in /dev/shm; {} created {}",
                                pile.said(), who(makers), pile.count == 1 ? "it" : "them");
  finding.fix = fmt::format(
      "Call unlink() once, in the process that created the segment, in `finally` or atexit. Free "
      "it now with `rm {}`",
      pile.paths.front());
  finding.details["paths"] = pile.paths;
  return {std::move(finding)};
}

/// A process has mapped more and more segments, over several snapshots and several moments of its
/// past, and released none of the old ones.
bool is_growing(const model::Fact& kept) {
  return kept.number("grew").value_or(0) > 0 &&
         kept.number("moments").value_or(0) >= kFewestMoments &&
         kept.number("oldest_seconds").value_or(0) >= kLongerThanAStep;
}

/// "; /dev/shm is full in about 5 min at this rate": the limit that is reached first.
std::string when_it_ends(const model::Fact& kept, double per_second) {
  const double count = kept.number("count").value_or(0);
  const double each = count > 0 ? kept.number("bytes").value_or(0) / count : 0;
  const auto room = kept.number("bytes_free");
  const auto limit = kept.number("mappings_limit");
  const double full = room && each > 0 ? *room / each / per_second : kNever;
  const double mapped =
      limit ? std::max(0.0, *limit - kept.number("mappings").value_or(0)) / per_second : kNever;
  if (std::min(full, mapped) >= kNever) {
    return {};
  }
  return full <= mapped
             ? fmt::format("; /dev/shm is full in about {}", base::duration(full))
             : fmt::format("; vm.max_map_count is reached in about {}", base::duration(mapped));
}

Finding keeps_too_much(const graph::Examination& examination, const model::Fact& kept) {
  const model::JobModel& job = examination.job;
  const model::Process* process = kept.pid ? model::process(job, *kept.pid) : nullptr;
  const model::Thread* main = process == nullptr ? nullptr : model::main_thread(*process);
  const auto rank = kept.rank || process == nullptr ? kept.rank : served_rank(job, *process);
  const std::string who =
      rank ? fmt::format("rank {}", *rank) : fmt::format("process {}", kept.pid.value_or(0));
  const double per_second =
      kept.number("grew").value_or(0) / std::max(kept.number("over_seconds").value_or(1), 0.001);
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  if (rank) {
    finding.culprits.insert(*rank);
  }
  const auto count = static_cast<std::int64_t>(kept.number("count").value_or(0));
  finding.summary = fmt::format(
      "{} keeps {} shared memory segments of its DataLoader ({}), {:.1f} more per second{}", who,
      count, base::bytes(kept.number("bytes").value_or(0)), per_second,
      when_it_ends(kept, per_second));
  const model::CallSite keeps = main == nullptr ? model::CallSite{} : keeps_batches(job, *main);
  const model::CallSite chosen = chooses_file_system(job);
  if (keeps.known()) {
    finding.locations.push_back(location(keeps, finding.culprits, who + " keeps each batch here"));
  } else if (main != nullptr && own_user_frame(*main) != nullptr) {
    finding.locations.push_back(
        location(model::call_site(*own_user_frame(*main)), finding.culprits, who + " is here now"));
  }
  if (chosen.known()) {
    finding.locations.push_back(
        location(chosen, {}, "this call stores each tensor of a worker as a file in /dev/shm"));
  }
  finding.evidence.push_back(
      {.rank = rank,
       .text = fmt::format("{} segments more in {:.1f} s; the oldest, {}, is {} old and still "
                           "mapped; {:.0f} mappings of {:.0f} allowed",
                           kept.number("grew").value_or(0), kept.number("over_seconds").value_or(0),
                           kept.text("oldest").value_or("?"),
                           base::duration(kept.number("oldest_seconds").value_or(0)),
                           kept.number("mappings").value_or(0),
                           kept.number("mappings_limit").value_or(0))});
  finding.fix =
      keeps.known()
          ? fmt::format(
                "Keep a copy instead (.clone() or .item()), which frees the segment "
                "({}).",
                place(keeps))
          : "Keep copies (.clone(), .item()) of the tensors of a DataLoader, not the tensors.";
  finding.details["segments"] = count;
  finding.details["segments_per_second"] = per_second;
  return finding;
}

Findings growing(const graph::Examination& examination) {
  Findings findings;
  for (const model::Fact* kept : model::facts(examination.job, "shm-kept")) {
    if (!examination.job.ended && is_growing(*kept)) {
      findings.push_back(keeps_too_much(examination, *kept));
    }
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  if (Findings findings = growing(examination); !findings.empty()) {
    return findings;
  }
  Findings findings = left_by_this_job(examination);
  return findings.empty() ? left_by_others(examination) : findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Shared memory was left behind",
    .explanation =
        R"(What you see: /dev/shm fills up, from step to step or from run to run; it contains torch_PID_… files whose process has
exited.

Why: under the file_system sharing strategy each tensor that a worker sends is a file in /dev/shm and a mapping of the process. The
file exists as long as a process keeps the tensor, and a killed process cannot remove it.

How ddpdoctor knows: a process of a running job has more segments in each snapshot, its oldest ones keep ageing, and it releases none.
Under run, a segment that the job made is still there after the job has ended. Segments of earlier jobs are listed in a note at the
end of the report; they are a finding only while /dev/shm is nearly full.

Fix:
    - seen.append(images)
    + seen.append(images.clone())
    $ ddpdoctor clean
    - torch.multiprocessing.set_sharing_strategy("file_system")
    + finally:
    +     segment.close()
    +     if local_rank == 0: segment.unlink())",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors::shm_leaked
