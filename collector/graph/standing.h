// SPDX-License-Identifier: Apache-2.0
// The state of each rank: what its decisive thread does, in terms of torch.distributed, and on
// which user line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

class History;

enum class Activity {
  kUnobserved,    // no evidence about this rank
  kAbsent,        // expected, but no process was found
  kDead,          // ended by a signal
  kExited,        // ended with a status
  kCollective,    // in a collective of torch.distributed
  kPointToPoint,  // in send / recv / batch_isend_irecv
  kDdpBackward,   // in backward, waiting for a bucket of the reducer
  kDdpForward,    // in DDP's forward: buffer broadcast, parameter check
  kDdpConstructor,
  kNewGroup,
  kStore,       // TCPStore/FileStore get, wait
  kRendezvous,  // init_process_group, TCPStore constructor, elastic rendezvous
  kDataLoader,  // waits for a worker
  kJoin,        // waits for a child process or thread
  kQueue,       // multiprocessing queue or pipe
  kLock,        // Python or native lock
  kEventLoop,   // asyncio, when no task can run
  kGpu,         // end of its own CUDA work
  kImport,
  kInput,     // pdb, input()
  kStopped,   // state T
  kIo,        // its own file, network or device input/output
  kSleeping,  // time.sleep, poll loops in user code
  kCompiling,
  kSaving,        // checkpoint, serialisation
  kExit,          // atexit, destroy_process_group, finalisation
  kComputing,     // on CPU in user or library code
  kBetweenCalls,  // only records: its newest call has ended
  kUnknown
};

std::string_view activity_name(Activity activity);

/// The call a rank is blocked in, as far as stacks show.
struct BlockedCall {
  std::string operation{};  // "all_reduce", "barrier", "send", …; for DDP backward "all_reduce"
  std::string group{};      // ProcessGroup::id, empty = unknown
  std::optional<std::int64_t> sequence{};
  std::optional<model::Rank> root{};
  std::optional<model::Rank> peer{};
  std::optional<int> tag{};  // of a message, if recorded
  std::string reduce_op{};
  std::optional<std::vector<std::int64_t>> shape{};
  std::string dtype{};
};

struct Standing {
  model::Rank rank = 0;
  Activity activity = Activity::kUnobserved;
  std::optional<BlockedCall> call;
  model::CallSite user;                  // innermost user line; unknown when there is none
  std::vector<model::CallSite> callers;  // user frames, innermost first
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;  // the decisive one
  bool moved = false;                     // its stack changed between observations
  bool launched = false;  // `call` is the last call it launched according to the source
  // Running in the snapshot, busy between snapshots, or in a short pause of work.
  bool on_cpu = false;

  /// In a wait that only other ranks can end.
  [[nodiscard]] bool waits_for_ranks() const;
};

/// One standing for each rank of the job, in rank order.
std::vector<Standing> standings(const model::JobModel& job);
std::vector<Standing> standings(const model::JobModel& job, const History& history);

/// The same for a single thread (DataLoader workers, helper threads).
Standing standing_of(const model::JobModel& job, const model::Process& process,
                     const model::Thread& thread);

/// The same with an existing index of recorded calls, for callers that examine many threads.
Standing standing_of(const model::JobModel& job, const History& history,
                     const model::Process& process, const model::Thread& thread);

}  // namespace ddpdoctor::graph
