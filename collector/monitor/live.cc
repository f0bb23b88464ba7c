// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/live.h"

#include <set>
#include <unistd.h>

#include <fmt/format.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/model/building/add_recordings.h"
#include "collector/monitor/observe.h"
#include "collector/monitor/spool_job.h"
#include "collector/sources/processes/candidates.h"
#include "collector/sources/rings/reader.h"
#include "wire/names.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::chrono::seconds kQuiet{10};  // time without a call before a diagnosis is made
constexpr double kBetweenSamples = 1;       // seconds

/// The spool that a process records to; empty if there is none.
std::string spool_of(sources::Candidates& candidates, pid_t pid) {
  const auto& environment = candidates.completed(pid).environment;
  const auto found = environment.find(wire::kSpoolVariable);
  return found == environment.end() ? "" : found->second;
}

/// `pid`, or the command below it if `pid` is the `ddpdoctor run` that started it.
pid_t job_process(const sources::Candidates& candidates, pid_t pid) {
  const sources::ProcessRow* row = candidates.row(pid);
  const bool ours = row != nullptr && row->comm == "ddpdoctor";
  return ours && !candidates.children(pid).empty() ? candidates.children(pid).front() : pid;
}

bool same_process(pid_t pid, std::uint64_t start_ticks) {
  const auto row = sources::read_process(pid);
  return row && row->start_ticks == start_ticks && row->state != 'Z' && row->state != 'X';
}

}  // namespace

LiveSource::LiveSource(pid_t pid, std::uint64_t start_ticks, std::string spool)
    : pid_(pid), start_ticks_(start_ticks), spool_(std::move(spool)) {
  if (!spool_.empty()) {
    pulse_.emplace(spool_);
  }
}

base::Result<LiveSource> LiveSource::of_pid(pid_t pid) {
  sources::Candidates candidates(sources::read_process_table());
  const pid_t process = job_process(candidates, pid);
  const sources::ProcessRow* row = candidates.row(process);
  if (row == nullptr || row->state == 'Z') {
    return base::failure(fmt::format("there is no process {} to watch", pid),
                         "find the job with: pgrep -af torchrun");
  }
  return LiveSource(process, row->start_ticks, spool_of(candidates, process));
}

base::Result<LiveSource> LiveSource::of_spool(const std::string& folder) {
  std::vector<std::string> problems;
  const auto recordings = TRY(sources::read_spool(folder, problems));
  if (recordings.empty()) {
    return base::failure(fmt::format("{} holds no ring yet", folder),
                         "watch --spool takes the folder that run --spool was given");
  }
  for (const sources::Recording& recording : recordings) {
    if (recording.rank && same_process(recording.pid, recording.start_ticks)) {
      return LiveSource(recording.pid, recording.start_ticks, folder);
    }
  }
  return LiveSource(0, 0, folder);
}

base::Result<LiveSource> LiveSource::only_one() {
  sources::Candidates candidates(sources::read_process_table());
  std::map<std::string, pid_t> jobs;
  for (const auto& [pid, row] : candidates.table()) {
    if (row.kernel_thread || row.state == 'Z') {
      continue;
    }
    if (const std::string spool = spool_of(candidates, pid); !spool.empty()) {
      jobs.emplace(spool, pid);  // the lowest pid, usually the launcher
    }
  }
  if (jobs.size() == 1) {
    return of_pid(jobs.begin()->second);
  }
  std::string pids;
  for (const auto& [spool, pid] : jobs) {
    pids += fmt::format("{}{}", pids.empty() ? "" : ", ", pid);
  }
  return base::failure(
      jobs.empty() ? "no job here was started by ddpdoctor run"
                   : fmt::format("{} jobs here were started by ddpdoctor run", jobs.size()),
      jobs.empty() ? "name a process of the job: ddpdoctor watch PID"
                   : fmt::format("name one of them: ddpdoctor watch PID, of {}", pids));
}

base::Result<model::JobModel> LiveSource::read(int samples) {
  const bool alive = pid_ != 0 && same_process(pid_, start_ticks_);
  model::JobModel job;
  if (alive) {
    job = TRY(observe(pid_, {.whole_tree = true,
                             .allow_stop = true,
                             .native = true,
                             .samples = samples,
                             .interval = samples > 1 ? kBetweenSamples : 0}));
  } else if (!spool_.empty() && holds_rings(spool_)) {
    job = TRY(job_of_spool(spool_));
  } else {
    job.ended = true;
  }
  std::vector<std::string> problems;
  if (const auto recordings = alive && !spool_.empty() ? sources::read_spool(spool_, problems)
                                                       : std::vector<sources::Recording>{};
      recordings && !recordings->empty()) {
    model::add_recordings(job, *recordings);
  }
  return job;
}

base::Result<graph::LiveView> LiveSource::look() {
  const model::JobModel job = TRY(read(1));
  graph::LiveView view = graph::live_view(job);
  view.ended = pid_ == 0 || !same_process(pid_, start_ticks_);
  count(view);
  judge(view);
  return view;
}

/// Diagnoses a job that has made no call for some time, as `attach` would, and again after the same
/// time.
void LiveSource::judge(graph::LiveView& view) {
  const auto now = std::chrono::steady_clock::now();
  if (!view.ended && now - quiet_since_ >= kQuiet && now - judged_at_ >= kQuiet) {
    const auto job = read(2);
    const auto found = job ? diagnosis::diagnose(*job).findings : detectors::Findings{};
    judged_at_ = std::chrono::steady_clock::now();
    verdict_.reset();
    if (!found.empty()) {
      const detectors::Finding& first = found.front();
      verdict_ = {
          .summary = first.summary,
          .about = fmt::format("{}, {}", first.kind, detectors::confidence_name(first.confidence)),
          .fix = first.fix,
          .possible = first.confidence == detectors::Confidence::kPossible};
    }
  }
  view.verdict = verdict_;
}

void LiveSource::count(graph::LiveView& view) {
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t calls = pulse_ ? pulse_->read().collectives : view.calls;
  if (calls_ && calls >= *calls_) {
    const double seconds = std::chrono::duration<double>(now - counted_at_).count();
    view.calls_per_second = seconds > 0 ? static_cast<double>(calls - *calls_) / seconds : 0;
  }
  if (!calls_ || calls != *calls_) {
    quiet_since_ = now;
    verdict_.reset();
  }
  calls_ = calls;
  counted_at_ = now;
}

}  // namespace ddpdoctor::monitor
