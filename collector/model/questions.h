// SPDX-License-Identifier: Apache-2.0
// Simple queries on a JobModel that many stages need; no judgements.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// A function of MPI's C interface.
bool is_mpi_function(std::string_view function);

/// The newest observation; nullptr if there is none.
const Observation* latest(const JobModel& job);
const Observation* previous(const JobModel& job);

/// The process of this rank (not one of its workers) in the newest observation.
const Process* rank_process(const JobModel& job, Rank rank);
const Process* process(const JobModel& job, pid_t pid);

/// Main thread: tid == pid, else the first.
const Thread* main_thread(const Process& process);

/// Ranks seen as processes in the newest observation (alive or with an exit).
RankSet ranks_seen(const JobModel& job);
/// All ranks the job should have: 0 .. world_size-1, or those seen.
RankSet all_ranks(const JobModel& job);

/// Start of Thread::capture if another tool's text is the source: "from py-spy".
inline constexpr std::string_view kDumpedFrom = "from ";
/// … and how it ends if the tool may have been asked for one thread of several.
inline constexpr std::string_view kOneOfMany = ", one thread";
/// The stacks of this process were dumped by another tool: the time is unknown, and may differ
/// between processes.
bool was_dumped(const Process& process);

/// Beside the dump, nvidia-smi or its reader shows that every GPU runs a kernel.
bool all_gpus_are_busy(const JobModel& job);

/// False for torch, site-packages, the standard library, frozen modules, multiprocessing's runners
/// and files of launchers.
bool is_user_file(std::string_view path);
bool is_torch_file(std::string_view path);
/// "/venv/bin/mytrain": the script that pip makes for an entry point.
bool is_console_script(std::string_view path);
/// In site-packages, but not a known library: counts as the user's if there is no better frame.
bool may_be_installed_by_user(std::string_view path);
/// In site-packages, and neither torch nor what programs run on (compilers, drivers, launchers): a
/// framework for training or serving, whose lines show where a rank is.
bool is_framework_file(std::string_view path);

/// The innermost frame in the user's own code; nullptr if there is none.
const Frame* user_frame(const Thread& thread);
/// All of these frames, innermost first: own files, else an installed package, else typed code
/// ("<stdin>", "<string>"), else framework code.
std::vector<const Frame*> user_frames(const Thread& thread);
/// The same selection for recorded call sites.
std::vector<CallSite> user_sites(const std::vector<CallSite>& all);

/// True if a Python frame with this function name is in a file whose path ends with `file_suffix`.
bool has_python_frame(const Thread& thread, std::string_view function,
                      std::string_view file_suffix = {});
/// True when a native frame's function contains `part`.
bool has_native_frame(const Thread& thread, std::string_view part);
const Frame* find_python_frame(const Thread& thread, std::string_view function,
                               std::string_view file_suffix = {});
/// nullptr if there is no Python frame.
const Frame* innermost_python(const Thread& thread);
const Frame* find_native_frame(const Thread& thread, std::string_view part);

CallSite call_site(const Frame& frame);

/// The source line if the model contains it.
std::optional<std::string_view> source_line(const JobModel& job, std::string_view file, int line);

std::string_view role_name(Role role);  // "rank", "launcher", "dataloader-worker", "other", …
std::optional<Role> role_of(std::string_view name);

std::vector<const Fact*> facts(const JobModel& job, std::string_view kind);
const ProcessGroup* group(const JobModel& job, std::string_view id);
/// On NCCL, or on RCCL, its twin for AMD.
bool is_of_nccl(const ProcessGroup& group);

/// A unique id for a group whose name another group with different members already has: "3:1,3".
std::string id_of_namesake(std::string_view name, const RankSet& members);
/// The name in such an id: "3"; any other id is returned unchanged.
std::string_view name_in_id(std::string_view id);

/// Two or more complete jobs below one command: evidence about one says nothing about the other.
bool are_several_jobs(const JobModel& job);

}  // namespace ddpdoctor::model
