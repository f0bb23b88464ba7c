// SPDX-License-Identifier: Apache-2.0
// The part of a stack below the user's innermost frame shows what the thread does; the table in
// activity_table.cc names it.
#include "collector/graph/standing.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "collector/graph/activity_rules.h"
#include "collector/graph/backward_waits.h"
#include "collector/graph/blocked_call.h"
#include "collector/graph/device_waits.h"
#include "collector/graph/framework_calls.h"
#include "collector/graph/history.h"
#include "collector/graph/launched_call.h"
#include "collector/graph/mpi_calls.h"
#include "collector/graph/posted_messages.h"
#include "collector/graph/recorded_standing.h"
#include "collector/graph/servers.h"
#include "collector/graph/shared_stands.h"
#include "collector/graph/shown_place.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

// A function of torch.distributed has priority over the waits inside it, but not over the functions
// around it (see the table).
constexpr int kOperationWeight = 60;
constexpr int kBackwardWeight = 55;

constexpr std::array<std::pair<Activity, std::string_view>, 29> kNames = {{
    {Activity::kUnobserved, "unobserved"},
    {Activity::kAbsent, "absent"},
    {Activity::kDead, "dead"},
    {Activity::kExited, "exited"},
    {Activity::kCollective, "in a collective"},
    {Activity::kPointToPoint, "in a send or receive"},
    {Activity::kDdpBackward, "in DDP's backward"},
    {Activity::kDdpForward, "in DDP's forward"},
    {Activity::kDdpConstructor, "in DDP's constructor"},
    {Activity::kNewGroup, "in new_group"},
    {Activity::kStore, "waiting for a key in the store"},
    {Activity::kRendezvous, "in the rendezvous"},
    {Activity::kDataLoader, "waiting for a DataLoader worker"},
    {Activity::kJoin, "waiting for a process or thread to end"},
    {Activity::kQueue, "waiting on a queue or pipe"},
    {Activity::kLock, "waiting for a lock"},
    {Activity::kEventLoop, "in an idle event loop"},
    {Activity::kGpu, "waiting for its GPU"},
    {Activity::kImport, "waiting for an import lock"},
    {Activity::kInput, "waiting for input"},
    {Activity::kStopped, "stopped"},
    {Activity::kIo, "in input or output"},
    {Activity::kSleeping, "sleeping"},
    {Activity::kCompiling, "compiling"},
    {Activity::kSaving, "saving or loading"},
    {Activity::kExit, "exiting"},
    {Activity::kComputing, "computing"},
    {Activity::kBetweenCalls, "after its newest recorded call"},
    {Activity::kUnknown, "blocked"},
}};

using Segment = std::span<const stacks::Frame>;

// Frames below the user's innermost frame; all frames if there is none, or if it is of an installed
// program.
Segment below_user(const model::Thread& thread) {
  const stacks::Frame* user = model::user_frame(thread);
  if (user == nullptr || (user->language == stacks::Language::kPython &&
                          !model::is_user_file(user->file) && !user->of_backend)) {
    return thread.frames;
  }
  return Segment(thread.frames).first(static_cast<std::size_t>(user - thread.frames.data()));
}

bool runs(const model::Thread& thread) {
  return thread.state == 'R';
}

bool has_native(Segment frames, std::initializer_list<std::string_view> parts) {
  return std::any_of(frames.begin(), frames.end(), [&parts](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kNative &&
           std::any_of(parts.begin(), parts.end(), [&frame](std::string_view part) {
             return frame.function.find(part) != std::string::npos;
           });
  });
}

// Waits for its device to finish the work it was given. In backward(), main threads wait for
// autograd's threads, which launch that work.
bool waits_for_gpu(const model::JobModel& job, const model::Process& process,
                   const model::Thread& thread, Segment frames) {
  return waits_for_device(frames) || (model::was_dumped(process) && is_inside_driver(frames)) ||
         (runs(thread) && is_on_gpu(job, process) &&
          (is_in_backward(frames) ||
           (!has_native(frames, {""}) && reads_device_value(job, thread))));
}

// In a host function of NCCL that itself waits for other ranks.
bool waits_in_nccl(Segment frames) {
  return has_native(frames, {"ncclCommInit", "ncclCommSplit", "ncclCommShrink", "ncclCommGrow",
                             "ncclGroupEnd", "ncclCommFinalize", "ncclCommDestroy",
                             "ncclCommWindowRegister", "ncclDevCommCreate"});
}

Activity activity_of(const model::JobModel& job, const model::Process& process,
                     const model::Thread& thread, const std::optional<BlockedCall>& call) {
  if (process.exit) {
    return process.exit->signal ? Activity::kDead : Activity::kExited;
  }
  if (thread.state == 'T' || thread.state == 't') {
    return Activity::kStopped;
  }
  const Segment frames = below_user(thread);
  const stacks::Frame* at = nullptr;
  const ActivityRule* rule = deciding_rule(frames, &at);
  rule = rule == nullptr ? rule_of_file(thread, model::user_frame(thread)) : rule;
  if (rule != nullptr && rule->activity == Activity::kCompiling && waits_for_device(frames)) {
    return Activity::kGpu;  // it times a kernel, which runs after a collective of the same stream
  }
  const int weight = rule == nullptr ? 0 : rule->weight;
  if (call && weight < kOperationWeight) {
    return is_point_to_point(call->operation) ? Activity::kPointToPoint : Activity::kCollective;
  }
  const auto in_backward =
      weight < kBackwardWeight ? wait_in_backward(job, frames, process, thread) : std::nullopt;
  if (in_backward) {
    return *in_backward;
  }
  return rule == nullptr ? activity_by_state(job, thread) : rule->activity;
}

// True if this thread was at another place in the previous observation.
bool moved_since(const model::Process* before, const model::Thread& thread) {
  if (before == nullptr) {
    return false;
  }
  const auto found =
      std::find_if(before->threads.begin(), before->threads.end(),
                   [&thread](const model::Thread& other) { return other.tid == thread.tid; });
  return found != before->threads.end() && !found->frames.empty() && !thread.frames.empty() &&
         !same_above_driver(found->frames, thread.frames);
}

const model::Process* process_before(const model::JobModel& job, const model::Process& process) {
  const model::Observation* before = model::previous(job);
  if (before == nullptr) {
    return nullptr;
  }
  return same_process(*before, process);
}

bool calls_ranks(Activity activity) {
  return activity == Activity::kCollective || activity == Activity::kPointToPoint ||
         activity == Activity::kDdpBackward || activity == Activity::kDdpForward ||
         activity == Activity::kDdpConstructor;
}

struct Context {
  const model::JobModel& job;
  const History& history;
  const model::Process* before = nullptr;
};

Standing stand(const Context& context, const model::Process& process, const model::Thread& thread) {
  Standing result;
  result.rank = process.rank.value_or(-1);
  result.process = &process;
  result.thread = &thread;
  result.on_cpu = runs(thread) || worked_since(context.job, context.before, process, thread);
  result.moved = moved_since(context.before, thread);
  const Segment frames = below_user(thread);
  result.call = call_in_frames(context.job, frames);
  const auto inner = is_in_backward(frames) ? call_in_backward(process) : std::nullopt;
  if (!result.call && inner && inner->activity == Activity::kCollective) {
    result.call = call_in_frames(context.job, inner->thread->frames);
  }
  if (!result.call) {
    result.call = call_without_python(process, thread);
  }
  const WrappedCall wrapped = result.call ? WrappedCall{} : wrapped_call(thread.frames);
  if (!wrapped.operation.empty()) {
    result.call = BlockedCall{.operation = std::string(wrapped.operation)};
  }
  const model::CollectiveCall* head = nullptr;
  result.activity = activity_of(context.job, process, thread, result.call);
  result.on_cpu = result.on_cpu || (inner && result.activity == Activity::kComputing);
  if (result.activity == Activity::kPointToPoint && result.call && !result.call->peer) {
    result.call->peer = peer_of_posted(thread.frames, result.call->operation);
  }
  const bool recorded =
      !context.history.groups().empty() || !context.history.point_to_point(result.rank).empty();
  bool whole = false;
  const MpiFunction* mpi = result.call ? nullptr : mpi_function(frames, recorded);
  if (mpi != nullptr && !process.exit && result.activity != Activity::kStopped) {
    result.on_cpu = false;  // MPI waits by polling
    result.activity = mpi->activity;
    result.call = call_of_mpi(*mpi, result.rank, context.history, result.activity);
    whole = take_method_of_mpi4py(frames, result.activity, *result.call);
  }
  const bool may_wait_for_gpu = result.activity == Activity::kRendezvous ||
                                !result.waits_for_ranks();  // initialization of NCCL counts as one
  const bool on_gpu = waits_for_gpu(context.job, process, thread, frames);
  const bool for_a_call = on_gpu && !waits_for_all_of_device(frames);
  if (may_wait_for_gpu && !result.call && (for_a_call || waits_in_nccl(frames)) &&
      has_unfinished_call(context.history, result.rank)) {
    head = unfinished_on_gpu(context.history, result.rank);
    result.activity =
        head != nullptr && head->point_to_point ? Activity::kPointToPoint : Activity::kCollective;
    result.on_cpu = false;  // CUDA waits by polling
  } else if (const auto* before = unfinished_before(context.history, result, thread);
             before != nullptr && on_gpu && result.activity == Activity::kCollective) {
    head = before;
    result.activity = head->point_to_point ? Activity::kPointToPoint : result.activity;
    result.on_cpu = false;
  } else if (on_gpu &&
             (result.activity == Activity::kComputing || result.activity == Activity::kUnknown)) {
    result.activity = Activity::kGpu;               // no record shows what its streams wait for
    result.on_cpu = result.on_cpu && result.moved;  // it spins
  }
  if (const auto* polled = polled_call(thread, context.history, result.rank);
      polled != nullptr && !result.waits_for_ranks() && !process.exit) {
    result.activity = polled->point_to_point ? Activity::kPointToPoint : Activity::kCollective;
    result.on_cpu = false;
    head = polled;
  }
  const bool spins = calls_ranks(result.activity)  // it is in the call, or polls for an event
                         ? result.on_cpu && is_on_gpu(context.job, process)
                         : ends_its_groups(process, thread) ||
                               (result.activity == Activity::kQueue && context.before != nullptr);
  result.on_cpu = result.on_cpu && (result.moved || !spins);
  if (!result.waits_for_ranks() && mpi == nullptr) {
    result.on_cpu = result.on_cpu || waits_for_a_moment(context.job, thread) ||
                    is_served_from_outside(context.job, process, thread) ||
                    (result.activity == Activity::kEventLoop &&
                     (an_event_came(context.job, process, thread) || has_timer_soon(thread))) ||
                    its_server_works(context.job, process, thread) ||
                    (process.rank && (a_child_works(context.job, process) ||
                                      an_awaited_thread_works(context.job, process, thread) ||
                                      another_thread_works(context.job, process, thread)));
  }
  if (calls_ranks(result.activity) && !whole) {
    result.call = result.call.value_or(BlockedCall{});
    if (result.activity == Activity::kDdpBackward && result.call->operation.empty()) {
      result.call->operation = "all_reduce";
    }
    if (result.activity == Activity::kDdpForward && result.call->operation.empty()) {
      result.call->operation = "broadcast";
    }
    complete_from_history(*result.call, result, context.job, context.history);
  }
  for (const stacks::Frame* frame : callers_of_wrapper(thread, wrapped.called)) {
    result.callers.push_back(model::call_site(*frame));
  }
  if (const stacks::Frame* user = model::user_frame(thread)) {
    result.user = result.callers.empty() ? model::call_site(*user) : result.callers.front();
  }
  if (result.callers.empty() && result.user.known()) {
    result.callers.push_back(result.user);
  }
  if (head != nullptr) {  // the host ran ahead of its GPU
    result.call = blocked_in(*head);
    result.user = head->call_site;
    result.callers = callers_of(*head, result.callers);
  }
  return result;
}

// The training may run in a thread for which the main thread waits.
bool only_waits_for_threads(const Standing& standing) {
  return standing.activity == Activity::kJoin || standing.activity == Activity::kLock ||
         standing.activity == Activity::kQueue || standing.activity == Activity::kEventLoop ||
         standing.activity == Activity::kUnknown;
}

Standing stand(const Context& context, const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  if (main == nullptr || says_nothing(context.history, process, *main)) {
    Standing result;
    result.rank = process.rank.value_or(-1);
    result.process = &process;
    result.activity = Activity::kUnobserved;
    if (process.exit) {
      result.activity = process.exit->signal ? Activity::kDead : Activity::kExited;
    } else if (process.state == 'Z' || process.state == 'X') {
      result.activity = ended_as(context.job, result.rank).value_or(Activity::kDead);
    }
    return result;
  }
  Standing standing = stand(context, process, *main);
  if (shows_no_place(process, standing)) {
    standing.activity = Activity::kUnobserved;
    standing.on_cpu = false;
    standing.thread = nullptr;
    return standing;
  }
  if (!only_waits_for_threads(standing)) {
    return standing;
  }
  for (const model::Thread& thread : process.threads) {
    if (&thread == main || model::user_frame(thread) == nullptr) {
      continue;
    }
    Standing other = stand(context, process, thread);
    if (calls_ranks(other.activity) || other.activity == Activity::kDataLoader) {
      return other;
    }
  }
  return standing;
}

}  // namespace

std::string_view activity_name(Activity activity) {
  const auto* const found =
      std::find_if(kNames.begin(), kNames.end(),
                   [activity](const auto& entry) { return entry.first == activity; });
  return found == kNames.end() ? "unknown" : found->second;
}

bool Standing::waits_for_ranks() const {
  switch (activity) {
    case Activity::kCollective:
    case Activity::kPointToPoint:
    case Activity::kDdpBackward:
    case Activity::kDdpForward:
    case Activity::kDdpConstructor:
    case Activity::kNewGroup:
    case Activity::kStore:
    case Activity::kRendezvous:
      return true;
    default:
      return false;
  }
}

std::vector<Standing> standings(const model::JobModel& job) {
  return standings(job, History(job));
}

std::vector<Standing> standings(const model::JobModel& job, const History& history) {
  std::map<model::Rank, const model::Process*> processes;
  std::map<std::pair<pid_t, model::Rank>, const model::Process*> before;
  if (const model::Observation* now = model::latest(job)) {
    for (const model::Process& process : now->processes) {
      if (process.role == model::Role::kRank && process.rank) {
        processes.emplace(*process.rank, &process);
      }
    }
  }
  if (const model::Observation* earlier = model::previous(job)) {
    for (const model::Process& process : earlier->processes) {
      if (process.rank && process.role == model::Role::kRank) {
        before.emplace(std::pair(process.pid, *process.rank), &process);
      }
    }
  }
  std::vector<Standing> result;
  for (const model::Rank rank : model::all_ranks(job)) {
    const auto found = processes.find(rank);
    if (found == processes.end()) {
      result.push_back(recorded_standing(job, history, rank));
      continue;
    }
    const auto earlier = before.find(std::pair(found->second->pid, rank));
    result.push_back(stand({.job = job,
                            .history = history,
                            .before = earlier == before.end() ? nullptr : earlier->second},
                           *found->second));
  }
  take_common_wait_for_a_collective(result);
  take_shared_stands(job, result);
  take_backward_for_ddps(job, result);
  take_launched_calls(job, history, result);
  return result;
}

Standing standing_of(const model::JobModel& job, const model::Process& process,
                     const model::Thread& thread) {
  return standing_of(job, History(job), process, thread);
}

Standing standing_of(const model::JobModel& job, const History& history,
                     const model::Process& process, const model::Thread& thread) {
  return stand({.job = job, .history = history, .before = process_before(job, process)}, process,
               thread);
}

}  // namespace ddpdoctor::graph
