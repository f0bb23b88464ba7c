// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/left_behind.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include "collector/model/building/child_ends.h"
#include "collector/model/questions.h"
#include "collector/monitor/observe.h"
#include "collector/monitor/process_tree.h"
#include "collector/sources/files/file_users.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kAfterwards{2};
constexpr std::size_t kMostLeft = 64;

/// Descendants of this process (their subreaper) that have not exited within that time.
std::vector<pid_t> still_there() {
  const auto patience = std::chrono::steady_clock::now() + kAfterwards;
  std::vector<pid_t> left = descendants(::getpid());
  while (!left.empty() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(kLook);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left = descendants(::getpid());
  }
  return left;
}

/// Processes whose parent at the start of their recording was killed.
std::vector<pid_t> bereaved(const std::vector<sources::Recording>& recordings) {
  const auto ends = model::child_ends(recordings);
  const auto killed = [&ends](pid_t pid) {
    const auto end = ends.find(pid);
    return end != ends.end() && end->second.signal.has_value();
  };
  std::vector<pid_t> out;
  for (const sources::Recording& recording : recordings) {
    if (killed(recording.ppid) && !killed(recording.pid) && !recording.exit) {
      out.push_back(recording.pid);
    }
  }
  return out;
}

void add_left(const model::JobModel& seen, pid_t command, model::JobModel& job) {
  if (job.observations.empty()) {
    job.observations.emplace_back();
  }
  for (const model::Process& process : seen.observations.back().processes) {
    job.facts.push_back({.rank = process.rank,
                         .pid = process.pid,
                         .kind = "orphan",
                         .fields = {{"launcher_pid", static_cast<std::int64_t>(command)}}});
    job.observations.front().processes.push_back(process);
  }
}

/// An older file was not created by this job, only opened.
bool is_older(const std::string& path, double time) {
  struct statx state{};
  constexpr double kClockSlack = 1;
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &state) == 0 &&
         (state.stx_mask & STATX_BTIME) != 0 &&
         static_cast<double>(state.stx_btime.tv_sec) < time - kClockSlack;
}

/// The file of a segment that a recording reports as created; empty for other facts.
std::string file_of(const model::Fact& fact) {
  constexpr std::string_view kFolder = "/dev/shm/";
  const std::string path = fact.text("path").value_or("");
  const bool plain = path.starts_with(kFolder) && path.find('/', kFolder.size()) == path.npos;
  const bool made = fact.kind == "shm-segment" && fact.flag("recorded") == true;
  return made && plain && !is_older(path, fact.number("time").value_or(0)) ? path : "";
}

}  // namespace

model::JobModel processes_left(pid_t command, int status,
                               const std::vector<sources::Recording>& recordings) {
  std::vector<pid_t> wanted = bereaved(recordings);
  model::JobModel job;
  if (status == 0 && wanted.empty()) {
    return job;
  }
  std::vector<pid_t> left = still_there();
  if (status == 0) {
    std::erase_if(left, [&wanted](pid_t pid) {
      return std::find(wanted.begin(), wanted.end(), pid) == wanted.end();
    });
  }
  left.resize(std::min(left.size(), kMostLeft));
  for (const pid_t pid : left) {
    auto seen = observe(pid, {.whole_tree = false, .samples = 1});
    if (seen && !seen->observations.empty()) {
      add_left(*seen, command, job);
    }
  }
  return job;
}

void forget_daemons(const model::JobModel& left, std::vector<sources::Recording>& recordings) {
  std::erase_if(recordings, [&left](const sources::Recording& recording) {
    const auto row = sources::read_process(recording.pid);
    const bool lives = row && row->start_ticks == recording.start_ticks && row->state != 'Z';
    return lives && model::process(left, recording.pid) == nullptr;
  });
}

void mark_segments_left(model::JobModel& job) {
  std::vector<sources::WantedFile> files(job.facts.size());
  std::vector<sources::WantedFile> there;
  for (std::size_t i = 0; i < job.facts.size(); ++i) {
    const std::string path = file_of(job.facts[i]);
    if (!path.empty() && sources::look_at(path, files[i])) {
      there.push_back(files[i]);
    }
  }
  if (there.empty() || !still_there().empty()) {
    return;
  }
  const sources::FileUsers users = sources::users_of_files(there);
  for (std::size_t i = 0; i < files.size(); ++i) {
    sources::WantedFile again;
    const bool left = !files[i].path.empty() && sources::look_at(files[i].path, again) &&
                      again.id == files[i].id && !users.used(again) &&
                      sources::holding(again) == sources::Holding::kNobody;
    if (left) {
      job.facts[i].fields["left_behind"] = true;
    }
  }
}

}  // namespace ddpdoctor::monitor
