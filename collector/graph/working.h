// SPDX-License-Identifier: Apache-2.0
// Whether somebody worked between two looks: slow is not hung.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// The same process in another observation; nullptr when it was not there.
const model::Process* same_process(const model::Observation& there, const model::Process& process);

/// On a CPU between the looks: a thread that works through many files, or that bytes come to, is
/// seen in the same call each time.
bool ran_between_looks(const model::JobModel& job, const model::Process& process,
                       const model::Thread& thread);

/// An event loop without a timer was on a CPU between the looks: what it waits for comes.
bool an_event_came(const model::JobModel& job, const model::Process& process,
                   const model::Thread& thread);

/// An event loop wakes up by itself within a minute: a task of it sleeps.
bool has_timer_soon(const model::Thread& thread);

/// Bytes come or go, if slowly: it ran between the looks, and stands in both in a channel that
/// leads out of the job.
bool is_served_from_outside(const model::JobModel& job, const model::Process& process,
                            const model::Thread& thread);

/// The thread ran between the looks and its process used a CPU or moved bytes: a rank that saves or
/// tokenises on one line of its own is slow, one that wakes up to sleep again is not.
bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread);

/// Something that the process started works: a compiler, a download, a worker. Other ranks do not
/// count.
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth = 0);

/// The thread joins another one of its process that is in a short pause of its work.
bool an_awaited_thread_works(const model::JobModel& job, const model::Process& process,
                             const model::Thread& thread);

/// Another Python thread of the process wanted a CPU in both looks, or pauses for a moment: it
/// works for the one that waits.
bool another_thread_works(const model::JobModel& job, const model::Process& process,
                          const model::Thread& thread);

/// Who holds the lock file that a thread of the process tries to take again and again; 0 = nobody
/// known.
pid_t holder_of_lock_file(const model::JobModel& job, const model::Process& process);

/// SQLite sleeps between two tries to lock its database: for ever, if the one that has it waits
/// too.
bool waits_for_database(const model::Thread& thread);

/// Who of the job holds that lock, as far as one process only has locked a file for writing; 0 =
/// nobody known.
pid_t holder_of_database(const model::JobModel& job, const model::Process& process);

/// In a wait of the user's program that will be over in a moment by itself: a short sleep, alone or
/// in a `for` loop of few rounds, or anything that is waited for with a timeout. In a `while` loop
/// it waits for something.
bool waits_for_a_moment(const model::JobModel& job, const model::Thread& thread);

}  // namespace ddpdoctor::graph
