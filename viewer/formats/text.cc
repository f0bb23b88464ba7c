// SPDX-License-Identifier: Apache-2.0
// The report as text for one terminal screen: what was not observed, what is wrong, where each rank
// is.
#include "base/text.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/left_segments.h"
#include "collector/model/questions.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

namespace {

constexpr std::size_t kMostFindings = 3;
constexpr std::size_t kMostCoverageLines = 5;

std::string ranks_or_processes(const model::JobModel& job) {
  const std::size_t ranks = model::all_ranks(job).size();
  if (ranks > 0) {
    return fmt::format("{} {}", ranks, ranks == 1 ? "rank" : "ranks");
  }
  const model::Observation* observation = model::latest(job);
  const std::size_t processes = observation == nullptr ? 0 : observation->processes.size();
  return fmt::format("{} {}", processes, processes == 1 ? "process" : "processes");
}

std::string still_for(const model::JobModel& job) {
  return job.seconds_without_progress
             ? fmt::format("no progress for {}", base::duration(*job.seconds_without_progress))
             : "no progress";
}

/// "rank 2 is at work (train.py:14, permutations)": the same stack twice is not a hang while it
/// uses a CPU.
std::optional<std::string> who_works(const diagnosis::Diagnosis& diagnosis) {
  const model::RankSet working = detectors::working_ranks(diagnosis.examination);
  if (working.empty()) {
    return std::nullopt;
  }
  const model::CallSite& at = diagnosis.examination.standing(working.front())->user;
  return fmt::format("{} {} at work{}", detectors::said(working), detectors::is_or_are(working),
                     at.known() ? " (" + base::printable(detectors::place(at)) + ")" : "");
}

/// "4 ranks are making progress".
std::string making_progress(std::string_view who) {
  return fmt::format("{} {} making progress", who, who.starts_with("1 ") ? "is" : "are");
}

std::string findings_block(const diagnosis::Diagnosis& diagnosis, const FileNames& names,
                           const TextOptions& options) {
  const std::size_t all = diagnosis.findings.size();
  const std::size_t shown = options.all_findings ? all : std::min(all, kMostFindings);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    out += (i == 0 ? "" : "\n") + finding_block(diagnosis, diagnosis.findings[i], names, options);
  }
  if (shown < all) {
    out += fmt::format("\n{} more {}: --all\n", all - shown,
                       all - shown == 1 ? "finding" : "findings");
  }
  return out;
}

/// Lines in the tone of a warning, wrapped; the first few of them unless all are asked for.
std::string notes_block(const std::vector<std::string>& lines, const TextOptions& options) {
  const std::size_t shown =
      options.all_findings ? lines.size() : std::min(lines.size(), kMostCoverageLines);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    const std::vector<std::string> wrapped = wrap(lines[i], options.width);
    for (std::size_t k = 0; k < wrapped.size(); ++k) {
      out += (k == 0 ? "" : "  ") + toned(wrapped[k], Tone::kWarning, options.colour) + "\n";
    }
  }
  if (shown < lines.size()) {
    out += fmt::format("… {} more like these: --all\n", lines.size() - shown);
  }
  return out;
}

}  // namespace

std::string coverage_block(const model::Coverage& coverage, const TextOptions& options) {
  std::vector<std::string> lines;
  for (const std::string& sentence : coverage.unobserved) {
    lines.push_back("not observed: " + one_line(sentence));
  }
  if (coverage.events_lost > 0) {
    lines.push_back(fmt::format("not observed: {} events were lost", coverage.events_lost));
  }
  for (const std::string& sentence : coverage.warnings) {
    lines.push_back("note: " + one_line(sentence));
  }
  return notes_block(lines, options);
}

std::string closing_block(const model::JobModel& job, const TextOptions& options) {
  const auto note = model::note_on_left_segments(job);
  return note ? notes_block({"note: " + one_line(*note)}, options) : "";
}

bool nobody_seen(const model::JobModel& job) {
  return job.collectives.empty() &&
         std::all_of(job.observations.begin(), job.observations.end(),
                     [](const model::Observation& look) { return look.processes.empty(); });
}

std::string verdict_line(const diagnosis::Diagnosis& diagnosis, const TextOptions& options) {
  using diagnosis::Verdict;
  const std::string who = ranks_or_processes(diagnosis.job);
  std::string said;
  Tone tone = Tone::kGood;
  switch (diagnosis.verdict) {
    case Verdict::kRunning:
      said = fmt::format("running: {}", making_progress(who));
      break;
    case Verdict::kFinished:
      said = nobody_seen(diagnosis.job)
                 ? "finished: the command has exited, and no rank was seen"
                 : fmt::format("finished: the job of {} has exited; no problem found", who);
      break;
    case Verdict::kSlow:
      said = fmt::format("slow: {}", making_progress(who));
      break;
    case Verdict::kHang:
      said =
          fmt::format("hang: {} in {}, but no known cause matches", still_for(diagnosis.job), who);
      tone = Tone::kWarning;
      break;
    case Verdict::kCrash:
      said = fmt::format("crash: a process of {} has died, but no known cause matches", who);
      tone = Tone::kWarning;
      break;
    case Verdict::kLeak:
      said = fmt::format("leak: {} left resources behind, but no known cause matches", who);
      tone = Tone::kWarning;
      break;
    case Verdict::kUndetermined:
      said =
          diagnosis.job.progress == model::Progress::kStill
              ? fmt::format("undetermined: {}, and no known cause matches",
                            who_works(diagnosis).value_or(still_for(diagnosis.job) + " in " + who))
              : fmt::format("undetermined: no known cause matches what was seen of {}", who);
      tone = Tone::kWarning;
      break;
  }
  const std::size_t colon = said.find(':');
  return toned(said.substr(0, colon), tone, options.colour) + said.substr(colon) + "\n";
}

std::string text(const diagnosis::Diagnosis& diagnosis, const TextOptions& options) {
  const FileNames names = file_names(diagnosis);
  std::vector<std::string> blocks{coverage_block(diagnosis.job.coverage, options)};
  blocks.push_back(diagnosis.findings.empty() ? verdict_line(diagnosis, options)
                                              : findings_block(diagnosis, names, options));
  blocks.push_back(stack_block(diagnosis, names, options));
  if (options.native) {
    blocks.push_back(thread_dump(diagnosis.job, names, options));
  }
  blocks.push_back(closing_block(diagnosis.job, options));
  std::string out;
  for (const std::string& block : blocks) {
    if (!block.empty()) {
      out += (out.empty() ? "" : "\n") + block;
    }
  }
  return out;
}

}  // namespace ddpdoctor::viewer
