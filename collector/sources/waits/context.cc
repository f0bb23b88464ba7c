// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/waits/context.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/network/sock_diag.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/stacks/target/maps.h"

namespace ddpdoctor::sources {

namespace {

std::vector<pid_t> pids_of(const JobTree& job) {
  std::vector<pid_t> pids;
  for (const JobProcess& process : job.processes) {
    pids.push_back(process.row.pid);
  }
  return pids;
}

}  // namespace

WaitContext::WaitContext(const JobTree& job, const std::vector<stacks::ProcessStacks>& stacks,
                         stacks::MapsTable* maps)
    : job_(job), descriptors_(pids_of(job)), maps_(maps != nullptr ? *maps : own_maps_) {
  for (const stacks::ProcessStacks& process : stacks) {
    stacks_[process.pid] = &process;
  }
}

const stacks::ProcessStacks* WaitContext::stacks_of(pid_t pid) const {
  const auto found = stacks_.find(pid);
  return found == stacks_.end() ? nullptr : found->second;
}

TcpTable& WaitContext::tcp(pid_t pid) {
  tcp_.read(pid);
  return tcp_;
}

const std::map<std::uint64_t, std::uint64_t>& WaitContext::unix_sockets() {
  if (!unix_) {
    unix_ = unix_peers();
  }
  return *unix_;
}

const std::vector<FileLock>& WaitContext::file_locks() {
  if (!locks_) {
    locks_ = read_locks();
  }
  return *locks_;
}

const std::set<pid_t>& WaitContext::mappers(const MappedByte& byte) {
  const auto [place, fresh] = mappers_.try_emplace(byte);
  if (!fresh) {
    return place->second;
  }
  const bool alone = job_.processes.size() < 2;
  const auto holds = [&byte](const stacks::Maps& maps) {
    return std::any_of(maps.all().begin(), maps.all().end(), [&byte](const auto& one) {
      return one.inode == byte.inode && one.device == byte.device && one.offset <= byte.offset &&
             byte.offset - one.offset < one.end - one.start;
    });
  };
  for (const pid_t pid : alone ? numbered_entries("/proc") : pids_of(job_)) {
    // Those of a whole machine would need too much memory.
    if (alone ? holds(stacks::Maps::of(pid).value_or(stacks::Maps())) : holds(maps(pid))) {
      place->second.insert(pid);
    }
  }
  return place->second;
}

stacks::LiveMemory& WaitContext::memory(pid_t pid) {
  auto& memory = memory_[pid];
  if (memory == nullptr) {
    memory = std::make_unique<stacks::LiveMemory>(pid);
  }
  return *memory;
}

const stacks::Maps& WaitContext::maps(pid_t pid) {
  return maps_.of(pid);
}

pid_t WaitContext::outer_pid(const ProcessRow& process, pid_t inner) const {
  if (process.inner_pid == 0 || process.inner_pid == process.pid) {
    return inner;
  }
  for (const JobProcess& other : job_.processes) {
    if (other.row.inner_pid == inner) {
      return other.row.pid;
    }
  }
  return 0;  // a process in that container, not in this job
}

std::string WaitContext::describe(pid_t pid) const {
  const JobProcess* process = job_.find(pid);
  if (process == nullptr) {
    const std::string comm(base::trim(read_file(proc_path(pid, "comm")).value_or("gone")));
    return fmt::format("pid {} ({}, not of this job)", pid, base::printable(comm));
  }
  const std::string rank = process->rank ? fmt::format("rank {}", *process->rank) : std::string();
  switch (process->role) {
    case JobRole::kRank:
      return rank.empty() ? fmt::format("pid {}", pid) : fmt::format("{} (pid {})", rank, pid);
    case JobRole::kLauncher:
      return fmt::format("launcher (pid {})", pid);
    case JobRole::kDataLoaderWorker:
      return fmt::format("worker{} (pid {})", rank.empty() ? "" : " of " + rank, pid);
    case JobRole::kResourceTracker:
      return fmt::format("resource tracker (pid {})", pid);
    case JobRole::kShmManager:
      return fmt::format("torch_shm_manager (pid {})", pid);
    case JobRole::kOther:
      break;
  }
  return fmt::format("pid {} ({})", pid, base::printable(process->row.comm));
}

}  // namespace ddpdoctor::sources
