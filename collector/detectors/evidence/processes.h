// SPDX-License-Identifier: Apache-2.0
// Plain questions about the processes of a job: whose child, which rank it serves, alive or not,
// forked or started anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// All processes of the newest observation, in order of pid.
std::vector<const model::Process*> processes(const model::JobModel& job);

std::vector<const model::Process*> children_of(const model::JobModel& job,
                                               const model::Process& parent);

/// The rank of a process, or of its nearest ancestor in the job that has one.
std::optional<model::Rank> served_rank(const model::JobModel& job, const model::Process& process);

/// It has not ended: neither a zombie nor known by its exit only.
bool alive(const model::Process& process);

/// A copy of its parent: a `fork` fact says so, or it runs the very command of its parent (exec
/// would have changed it).
bool forked_without_exec(const model::JobModel& job, const model::Process& process);

/// What an "exit" fact tells: its signal, else its status.
model::Exit exit_told_by(const model::Fact& fact);

/// How a process ended: its own exit, or an `exit` fact about its pid.
std::optional<model::Exit> exit_of(const model::JobModel& job, const model::Process& process);

/// Its launcher ended it, and in this way, when the job was over already.
bool was_cleaned_up(const model::JobModel& job, const model::Process& process);

/// The user's line where it crashed, when it wrote its stack as it died.
const model::Frame* place_of_crash(const model::Process* process);

/// "process 7"; `otherwise` for a process whose pid was not told.
std::string named(pid_t pid, std::string_view otherwise);

/// "process 7 (bash -c make)".
std::string with_command(const model::Process& process);

/// "SIGKILL" for 9; "signal 99" when it has no common name.
std::string signal_name(int signal);

/// By a signal that comes from what the process itself did.
bool crashed(const model::Exit& exit);

/// "killed by SIGKILL", "exited with status 1", "ended".
std::string how_it_ended(const std::optional<model::Exit>& exit);

/// The integer named `field` as a pid.
std::optional<pid_t> pid_field(const model::Fact& fact, const std::string& field);

/// The pid after "pid:" in a wait target ("pid:77"); absent for other targets.
std::optional<pid_t> target_pid(const model::WaitsOn& waits_on);

/// The tid after "thread:".
std::optional<pid_t> target_thread(const model::WaitsOn& waits_on);

/// The path after "file:", else the detail when it is a path.
std::optional<std::string> target_path(const model::WaitsOn& waits_on);

/// The waits_on of a thread when it is of this kind.
const model::WaitsOn* waits_on(const model::Thread& thread, std::string_view kind);

/// Torch may abort while its threads are torn down, after all work is done: every call of the rank
/// is complete, and the agent saw Python end or std::thread says so in the log.
bool aborted_while_ending(const model::JobModel& job, model::Rank rank,
                          const std::optional<model::Exit>& exit);

/// torchrun lives and watches: it ends all others when one of its ranks fails, so that those who
/// are gone ended well.
bool torchrun_watches(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
