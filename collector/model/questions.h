// SPDX-License-Identifier: Apache-2.0
// Plain questions about a JobModel that many stages ask. No opinions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// A function of MPI's C interface.
bool is_mpi_function(std::string_view function);

/// The newest observation; nullptr when there is none.
const Observation* latest(const JobModel& job);
const Observation* previous(const JobModel& job);

/// The process that is this rank (not one of its workers) in the newest observation.
const Process* rank_process(const JobModel& job, Rank rank);
const Process* process(const JobModel& job, pid_t pid);

/// Main thread: tid == pid, else the first.
const Thread* main_thread(const Process& process);

/// Ranks seen as processes in the newest observation (alive or with an exit).
RankSet ranks_seen(const JobModel& job);
/// All ranks the job should have: 0 .. world_size-1, or those seen.
RankSet all_ranks(const JobModel& job);

/// How Thread::capture begins where another tool's text is the source: "from py-spy".
inline constexpr std::string_view kDumpedFrom = "from ";
/// The stacks of this process were dumped by another tool: nobody knows when, or whether at one
/// time with the others.
bool was_dumped(const Process& process);

/// False for torch, site-packages, the standard library, frozen modules, multiprocessing's runners
/// and launchers' own files.
bool is_user_file(std::string_view path);
bool is_torch_file(std::string_view path);
/// "/venv/bin/mytrain": what pip makes of an entry point.
bool is_console_script(std::string_view path);
/// In site-packages, and of no library that is known to be one: the user's where nothing better is.
bool may_be_installed_by_user(std::string_view path);
/// In site-packages and neither torch nor what programs run on (compilers, drivers, launchers):
/// somebody wrote it to train or serve, and its lines tell where a rank is.
bool is_framework_file(std::string_view path);

/// The innermost frame that lies in the user's own code; nullptr when there is none.
const Frame* user_frame(const Thread& thread);
/// All of them, innermost first: own files, else an installed package, else code that was typed
/// ("<stdin>", "<string>"), else those of frameworks.
std::vector<const Frame*> user_frames(const Thread& thread);
/// The same choice among recorded places.
std::vector<CallSite> user_sites(const std::vector<CallSite>& all);

/// True when a Python frame of this function name lies in a file whose path ends with
/// `file_suffix`.
bool has_python_frame(const Thread& thread, std::string_view function,
                      std::string_view file_suffix = {});
/// True when a native frame's function contains `part`.
bool has_native_frame(const Thread& thread, std::string_view part);
const Frame* find_python_frame(const Thread& thread, std::string_view function,
                               std::string_view file_suffix = {});
/// nullptr: no frame of Python.
const Frame* innermost_python(const Thread& thread);
const Frame* find_native_frame(const Thread& thread, std::string_view part);

CallSite call_site(const Frame& frame);

/// The source line when the model carries it.
std::optional<std::string_view> source_line(const JobModel& job, std::string_view file, int line);

std::string_view role_name(Role role);  // "rank", "launcher", "dataloader-worker", "other", …
std::optional<Role> role_of(std::string_view name);

std::vector<const Fact*> facts(const JobModel& job, std::string_view kind);
const ProcessGroup* group(const JobModel& job, std::string_view id);

/// The id of a group whose name another one with other members has already: "3:1,3".
std::string id_of_namesake(std::string_view name, const RankSet& members);
/// The name in such an id: "3"; of any other id the whole.
std::string_view name_in_id(std::string_view id);

/// Two jobs or more below one command, each of them whole: what one does says nothing of the other.
bool are_several_jobs(const JobModel& job);

}  // namespace ddpdoctor::model
