// SPDX-License-Identifier: Apache-2.0
// Whether any thread worked between two snapshots: slow is not hung.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The same process in another observation; nullptr if it did not exist then.
const model::Process* same_process(const model::Observation& there, const model::Process& process);

/// Used a CPU between snapshots: a thread that processes many files, or receives bytes, may be seen
/// in the same call each time.
bool ran_between_looks(const model::JobModel& job, const model::Process& process,
                       const model::Thread& thread);

/// An event loop without a timer used a CPU between snapshots: the events it waits for arrive.
bool an_event_came(const model::JobModel& job, const model::Process& process,
                   const model::Thread& thread);

/// An event loop wakes up by itself within a minute: one of its tasks sleeps.
bool has_timer_soon(const model::Thread& thread);

/// Bytes arrive or leave slowly: the thread ran between snapshots, and in both it waits on a
/// channel to a process outside the job.
bool is_served_from_outside(const model::JobModel& job, const model::Process& process,
                            const model::Thread& thread);

/// The thread ran between snapshots and its process used a CPU or moved bytes: a rank that saves or
/// tokenizes on one line of its own is slow, one that wakes up only to sleep again is not.
bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread);

/// A process that this one started works: a compiler, a download, a worker. Other ranks do not
/// count.
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth = 0);

/// The thread joins another thread of its process that pauses briefly in its work.
bool an_awaited_thread_works(const model::JobModel& job, const model::Process& process,
                             const model::Thread& thread);

/// Another Python thread of the process wanted a CPU in both snapshots, or pauses briefly: it works
/// for the waiting one.
bool another_thread_works(const model::JobModel& job, const model::Process& process,
                          const model::Thread& thread);

/// The process that holds the lock file which a thread of `process` retries to take; 0 = unknown.
pid_t holder_of_lock_file(const model::JobModel& job, const model::Process& process);

/// SQLite sleeps between two attempts to lock its database: forever, if the lock's owner waits,
/// too.
bool waits_for_database(const model::Thread& thread);

/// The process of the job that holds that lock, if exactly one process has locked a file for
/// writing; 0 = unknown.
pid_t holder_of_database(const model::JobModel& job, const model::Process& process);

/// A wait of the user's program that will soon end by itself: a short sleep, alone or in a `for`
/// loop of few iterations, or any wait with a timeout. In a `while` loop it waits for an event.
bool waits_for_a_moment(const model::JobModel& job, const model::Thread& thread);

/// In the native call of destroy_process_group, which polls for the GPU and for the other ranks: a
/// dump calls that active.
bool ends_its_groups(const model::Process& process, const model::Thread& thread);

}  // namespace ddpdoctor::graph
