// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/facts/facts.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

RawFact fact_about(const JobProcess& process, std::string_view kind) {
  return RawFact{
      .rank = process.rank, .pid = process.row.pid, .kind = std::string(kind), .fields = {}};
}

std::string short_command(pid_t pid) {
  constexpr std::size_t kWidth = 120;
  std::string line;
  for (const std::string& argument :
       nul_separated(read_file(proc_path(pid, "cmdline")).value_or(""))) {
    line += (line.empty() ? "" : " ") + argument;
  }
  return base::elide(base::printable(line), kWidth);
}

std::vector<std::string> pid_list(const std::set<pid_t>& pids) {
  std::vector<std::string> texts;
  for (const pid_t pid : pids) {
    texts.push_back(std::to_string(pid));
  }
  return texts;
}

namespace {

double start_of(const JobTree& job) {
  double start = 0;
  for (const JobProcess& process : job.processes) {
    const bool live = process.row.state != 'Z' && process.row.state != 'X';
    if (live && (start == 0 || process.row.start_time < start)) {
      start = process.row.start_time;
    }
  }
  return start;
}

bool any_thread_in_d_state(const std::vector<stacks::ProcessStacks>& stacks) {
  return std::any_of(stacks.begin(), stacks.end(), [](const stacks::ProcessStacks& process) {
    return std::any_of(process.threads.begin(), process.threads.end(),
                       [](const stacks::ThreadStack& thread) { return thread.state == 'D'; });
  });
}

}  // namespace

std::vector<RawFact> surroundings(const JobTree& job,
                                  const std::vector<stacks::ProcessStacks>& stacks,
                                  stacks::MapsTable* maps) {
  WaitContext context(job, stacks, maps);
  return surroundings(context, stacks);
}

std::vector<RawFact> surroundings(WaitContext& context,
                                  const std::vector<stacks::ProcessStacks>& stacks) {
  const JobTree& job = context.job();
  if (job.processes.empty()) {
    return {};
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Scene scene{.context = context,
                    .stacks = stacks,
                    .now = std::chrono::duration<double>(now).count(),
                    .job_start = start_of(job),
                    .server_silent = any_thread_in_d_state(stacks)};
  Facts facts;
  add_process_facts(scene, facts);
  add_shm_facts(scene, facts);
  add_kept_segments(scene, facts);
  add_lock_facts(scene, facts);
  add_blocked_facts(scene, facts);
  add_network_facts(scene, facts);
  add_kernel_facts(scene, facts);
  add_worker_memory(scene, facts);
  return facts;
}

}  // namespace ddpdoctor::sources
