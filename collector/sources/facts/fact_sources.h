// SPDX-License-Identifier: Apache-2.0
// The parts of surroundings(), one function per subject. docs/capture.schema.json explains each
// field.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "collector/sources/facts/facts.h"
#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

using Facts = std::vector<RawFact>;

/// The input that all subjects share.
struct Scene {
  WaitContext& context;
  const std::vector<stacks::ProcessStacks>& stacks;
  double now = 0;              // seconds since the epoch
  double job_start = 0;        // start time of the oldest running process of the job
  bool server_silent = false;  // a thread is in D state: files on servers should not be accessed
};

/// Creates a fact about a process of the job, with its pid and, if any, its rank.
RawFact fact_about(const JobProcess& process, std::string_view kind);

/// The command line on one line, printable and shortened.
std::string short_command(pid_t pid);

/// The pids as text; 0 pids → an empty list.
std::vector<std::string> pid_list(const std::set<pid_t>& pids);

/// exit, fork, openmp-team, fd-usage, library-version.
void add_process_facts(const Scene& scene, Facts& facts);
/// shm-usage, shm-segment.
void add_shm_facts(const Scene& scene, Facts& facts);
/// shm-kept, for processes that keep many segments mapped. Uses shm-usage to see whether there are
/// many.
void add_kept_segments(const Scene& scene, Facts& facts);
/// worker-memory, for some DataLoader workers, if all of them together use more memory than is
/// free. Uses the fact "memory".
void add_worker_memory(const Scene& scene, Facts& facts);
/// file-lock, lock-file.
void add_lock_facts(const Scene& scene, Facts& facts);
/// blocked-on.
void add_blocked_facts(const Scene& scene, Facts& facts);
/// listen, connect.
void add_network_facts(const Scene& scene, Facts& facts);
/// memory, kernel-log.
void add_kernel_facts(const Scene& scene, Facts& facts);

/// One record of /dev/kmsg.
struct KernelMessage {
  double seconds_since_boot = 0;
  std::string text;
};
std::optional<KernelMessage> parse_kernel_message(std::string_view record);

/// "oom-kill", "segfault", "xid", "hung-task"; empty for lines that are not about a job.
std::string_view kernel_message_about(std::string_view text);

/// The pid that a line names ("Killed process 77", "python[77]", "task x:77 blocked", "pid=77"); 0
/// = none.
pid_t pid_in_kernel_message(std::string_view text);

}  // namespace ddpdoctor::sources
