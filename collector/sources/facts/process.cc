// SPDX-License-Identifier: Apache-2.0
// Facts about single processes: exits, forks, thread pools, descriptors, library versions.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <sys/wait.h>

#include "base/text.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::sources {

namespace {

std::string_view role_text(JobRole role) {
  switch (role) {
    case JobRole::kLauncher:
      return "launcher";
    case JobRole::kRank:
      return "rank";
    case JobRole::kDataLoaderWorker:
      return "dataloader-worker";
    case JobRole::kResourceTracker:
      return "resource-tracker";
    case JobRole::kShmManager:
      return "shm-manager";
    case JobRole::kOther:
      break;
  }
  return "other";
}

void add_exit(const JobProcess& process, Facts& facts) {
  if (process.row.state != 'Z') {
    return;
  }
  RawFact fact = fact_about(process, "exit");
  fact.fields["zombie"] = true;
  fact.fields["parent_pid"] = std::int64_t{process.row.ppid};
  fact.fields["role"] = std::string(role_text(process.role));
  const int status = process.row.exit_code.value_or(-1);
  if (process.row.exit_code && WIFSIGNALED(status)) {
    fact.fields["signal"] = std::int64_t{WTERMSIG(status)};
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    fact.fields["signal_name"] =
        name == nullptr ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("SIG{}", name);
    fact.fields["core_dumped"] = static_cast<bool>(WCOREDUMP(status));
  } else if (process.row.exit_code) {
    fact.fields["status"] = std::int64_t{WEXITSTATUS(status)};
  }
  facts.push_back(std::move(fact));
}

void add_fork(const JobTree& job, const JobProcess& process, Facts& facts) {
  const JobProcess* parent = job.find(process.row.ppid);
  if (parent == nullptr || process.row.state == 'Z' || parent->row.state == 'Z' ||
      !is_fork_of(process.row, parent->row)) {
    return;
  }
  RawFact fact = fact_about(process, "fork");
  fact.fields["parent_pid"] = std::int64_t{parent->row.pid};
  fact.fields["parent_threads"] = std::int64_t{parent->row.threads};
  fact.fields["threads"] = std::int64_t{process.row.threads};
  fact.fields["seconds_after_parent"] =
      std::max(0.0, process.row.start_time - parent->row.start_time);
  fact.fields["by"] = std::string("same-memory-map");
  facts.push_back(std::move(fact));
}

bool is_pool_library(std::string_view module) {
  return module.starts_with("libgomp") || module.starts_with("libiomp") ||
         module.starts_with("libomp") || module.starts_with("libopenblas") ||
         module.starts_with("libscipy_openblas");
}

/// The pool that created a thread: the library of its start function.
std::string pool_of(const stacks::ThreadStack& thread) {
  constexpr std::size_t kOutermost = 4;  // start function, start_thread, clone
  const std::size_t count = std::min(thread.frames.size(), kOutermost);
  for (std::size_t i = thread.frames.size() - count; i < thread.frames.size(); ++i) {
    const stacks::Frame& frame = thread.frames[i];
    if (frame.language == stacks::Language::kNative && is_pool_library(frame.module)) {
      return frame.module;
    }
  }
  return {};
}

void add_pools(const JobProcess& process, const stacks::ProcessStacks& stacks, Facts& facts) {
  std::map<std::string, std::int64_t> pools;
  for (const stacks::ThreadStack& thread : stacks.threads) {
    const std::string pool = thread.tid == process.row.pid ? std::string() : pool_of(thread);
    if (!pool.empty()) {
      ++pools[pool];
    }
  }
  for (const auto& [library, threads] : pools) {
    RawFact fact = fact_about(process, "openmp-team");
    fact.fields["library"] = library;
    fact.fields["threads"] = threads;
    facts.push_back(std::move(fact));
  }
}

/// The most frequent kinds of descriptors; files with temporary names in one folder count as one
/// kind.
std::vector<std::string> busiest_kinds(const std::vector<Descriptor>& open) {
  std::map<std::string, int> counts;
  for (const Descriptor& one : open) {
    ++counts[std::string(kind_name(one.kind))];
  }
  std::vector<std::pair<int, std::string>> ordered;
  for (const auto& [kind, count] : counts) {
    ordered.emplace_back(-count, kind);
  }
  std::sort(ordered.begin(), ordered.end());
  constexpr std::size_t kMostKinds = 5;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < ordered.size() && i < kMostKinds; ++i) {
    texts.push_back(fmt::format("{} {}", ordered[i].second, -ordered[i].first));
  }
  return texts;
}

void add_descriptors(const Scene& scene, const JobProcess& process, Facts& facts) {
  const auto& open = scene.context.descriptors().of(process.row.pid);
  const auto limits = read_file(proc_path(process.row.pid, "limits"));
  if (open.empty() || !limits) {
    return;
  }
  RawFact fact = fact_about(process, "fd-usage");
  fact.fields["count"] = static_cast<std::int64_t>(open.size());
  for (const std::string_view line : base::split(*limits, '\n')) {
    constexpr std::string_view kName = "Max open files";
    const auto values = line.starts_with(kName) ? words(line.substr(kName.size()))
                                                : std::vector<std::string_view>();
    if (values.size() < 2) {
      continue;
    }
    if (const auto soft = number<std::int64_t>(values[0])) {
      fact.fields["limit"] = *soft;
    }
    if (const auto hard = number<std::int64_t>(values[1])) {
      fact.fields["hard_limit"] = *hard;
    }
  }
  fact.fields["kinds"] = busiest_kinds(open);
  facts.push_back(std::move(fact));
}

/// One fact if all ranks have the same version, otherwise one per rank.
void add_versions(const Scene& scene, std::string_view library,
                  const std::map<pid_t, std::string>& versions, Facts& facts) {
  std::set<std::string> different;
  for (const auto& [pid, version] : versions) {
    different.insert(version);
  }
  for (const auto& [pid, version] : versions) {
    const JobProcess* process = scene.context.job().find(pid);
    RawFact fact = fact_about(*process, "library-version");
    fact.fields["library"] = std::string(library);
    fact.fields["version"] = version;
    fact.fields["differs"] = different.size() > 1;
    if (library == "python") {
      fact.fields["path"] = process->row.exe;
    }
    if (different.size() == 1) {
      fact.rank.reset();
      fact.pid.reset();
      facts.push_back(std::move(fact));
      return;
    }
    facts.push_back(std::move(fact));
  }
}

}  // namespace

void add_process_facts(const Scene& scene, Facts& facts) {
  const JobTree& job = scene.context.job();
  std::map<pid_t, std::string> torch;
  std::map<pid_t, std::string> python;
  for (const JobProcess& process : job.processes) {
    add_exit(process, facts);
    add_fork(job, process, facts);
    add_descriptors(scene, process, facts);
    const stacks::ProcessStacks* stacks = scene.context.stacks_of(process.row.pid);
    if (stacks == nullptr) {
      continue;
    }
    add_pools(process, *stacks, facts);
    if (process.role == JobRole::kRank && stacks->torch && !stacks->torch->version.empty()) {
      torch[process.row.pid] = stacks->torch->version;
    }
    if (process.role == JobRole::kRank && stacks->python && !stacks->python->version.empty()) {
      python[process.row.pid] = stacks->python->version;
    }
  }
  add_versions(scene, "torch", torch, facts);
  add_versions(scene, "python", python, facts);
}

}  // namespace ddpdoctor::sources
