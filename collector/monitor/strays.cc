// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/strays.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "collector/monitor/process_tree.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::size_t kMost = 256;  // stray processes, and threads of one

std::vector<std::string> threads_of(pid_t pid) {
  const std::string folder = sources::proc_path(pid, "task");
  std::vector<std::string> threads;
  for (const int tid : sources::numbered_entries(folder)) {
    threads.push_back(folder + "/" + std::to_string(tid));
    if (threads.size() == kMost) {
      break;
    }
  }
  return threads;
}

/// In the kernel's order; empty with a kernel that has no such list.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  for (const std::string& thread : threads_of(pid)) {
    const std::string list = sources::read_file(thread + "/children").value_or("");
    for (const std::string_view word : sources::words(list)) {
      if (const auto child = sources::number<pid_t>(word)) {
        children.push_back(*child);
      }
    }
  }
  return children;
}

/// Context switches of all its threads, voluntary and involuntary.
long turns_of(pid_t pid) {
  long turns = 0;
  for (const std::string& thread : threads_of(pid)) {
    const auto status = sources::read_file(thread + "/status");
    for (const std::string_view name : {"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"}) {
      const auto field = status ? sources::status_field(*status, name) : std::nullopt;
      turns += field ? sources::number<long>(*field).value_or(0) : 0;
    }
  }
  return turns;
}

}  // namespace

void Strays::look(double now) {
  std::vector<pid_t> pids = children_of(root_);
  std::erase_if(pids, [this](pid_t pid) { return pid == command_ || is_left_out(pid); });
  for (std::size_t i = 0; i < pids.size() && pids.size() < kMost; ++i) {
    const std::vector<pid_t> children = children_of(pids[i]);
    pids.insert(pids.end(), children.begin(), children.end());
  }
  std::map<pid_t, Seen> seen;
  for (const pid_t pid : pids) {
    const long turns = turns_of(pid);
    const auto before = seen_.find(pid);
    const bool idle = before != seen_.end() && before->second.turns == turns;
    seen[pid] = {.turns = turns, .since = idle ? before->second.since : now, .until = now};
  }
  seen_ = std::move(seen);
}

void Strays::add_to(model::JobModel& job) const {
  for (const auto& [pid, seen] : seen_) {
    auto row = sources::read_process(pid);
    if (!row || row->state == 'Z') {
      continue;
    }
    sources::complete(*row);
    job.facts.push_back({.rank = sources::rank_claim(row->environment).rank,
                         .pid = pid,
                         .kind = "stray",
                         .fields = {{"command", base::printable(row->comm)},
                                    {"start_time", row->start_time},
                                    {"idle_seconds", seen.until - seen.since}}});
  }
}

}  // namespace ddpdoctor::monitor
