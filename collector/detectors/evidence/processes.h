// SPDX-License-Identifier: Apache-2.0
// Simple queries on the processes of a job: parents, served ranks, exits, and whether a process was
// forked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// All processes of the newest observation, ordered by pid.
std::vector<const model::Process*> processes(const model::JobModel& job);

std::vector<const model::Process*> children_of(const model::JobModel& job,
                                               const model::Process& parent);

/// The rank of a process, or of its nearest ancestor in the job that has a rank.
std::optional<model::Rank> served_rank(const model::JobModel& job, const model::Process& process);

/// It has not exited: neither a zombie nor known only by its exit.
bool alive(const model::Process& process);

/// A copy of its parent: a `fork` fact says so, or both have the same command line (exec would have
/// changed it).
bool forked_without_exec(const model::JobModel& job, const model::Process& process);

/// The exit in an "exit" fact: its signal, else its status.
model::Exit exit_told_by(const model::Fact& fact);

/// How a process ended: its own exit, or an `exit` fact with its pid.
std::optional<model::Exit> exit_of(const model::JobModel& job, const model::Process& process);

/// Its launcher ended it in this way after the job had ended.
bool was_cleaned_up(const model::JobModel& job, const model::Process& process);

/// The user's line at which it crashed, if it wrote its stack.
const model::Frame* place_of_crash(const model::Process* process);

/// "process 7"; `otherwise` if the pid is unknown.
std::string named(pid_t pid, std::string_view otherwise);

/// "7", "7 and 8", "7, 8 and 9".
std::string pids_said(const std::vector<pid_t>& pids);

/// "process 7 (bash -c make)".
std::string with_command(const model::Process& process);

/// "SIGKILL" for 9; "signal 99" if there is no common name.
std::string signal_name(int signal);

/// Ended by a signal that its own code caused.
bool crashed(const model::Exit& exit);

/// "killed by SIGKILL", "exited with status 1", "ended".
std::string how_it_ended(const std::optional<model::Exit>& exit);

/// The integer in `field` as a pid.
std::optional<pid_t> pid_field(const model::Fact& fact, const std::string& field);

/// The pid after "pid:" in a wait target ("pid:77"); absent for other targets.
std::optional<pid_t> target_pid(const model::WaitsOn& waits_on);

/// The tid after "thread:".
std::optional<pid_t> target_thread(const model::WaitsOn& waits_on);

/// The path after "file:", else the detail if it is a path.
std::optional<std::string> target_path(const model::WaitsOn& waits_on);

/// The waits_on of a thread if it has this kind.
const model::WaitsOn* waits_on(const model::Thread& thread, std::string_view kind);

/// Torch may abort during shutdown of its threads, after all work is done: every call of the rank
/// is complete, and the agent saw Python exit or std::thread wrote a message.
bool aborted_while_ending(const model::JobModel& job, model::Rank rank,
                          const std::optional<model::Exit>& exit);

/// torchrun is running: it ends all others when one of its ranks fails, so ranks that have exited
/// were successful.
bool torchrun_watches(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
