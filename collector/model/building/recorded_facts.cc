// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/recorded_facts.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "collector/model/building/compiled_sites.h"
#include "collector/model/gpu_queue.h"
#include "collector/model/questions.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::model {
namespace {

using sources::RecordedEvent;
using sources::Recording;

Fact reducer_fact(const Recording& recording, const sources::RecordedReducer& reducer) {
  Fact fact{.rank = recording.rank, .pid = recording.pid, .kind = "reducer", .fields = {}};
  fact.fields["parameters"] = reducer.parameters;
  fact.fields["backward"] = reducer.generation;
  fact.fields["finalized"] = reducer.finalized;
  fact.fields["forwards"] = reducer.forwards;
  fact.fields["ready"] = reducer.ready;
  fact.fields["find_unused"] = reducer.find_unused;
  fact.fields["static_graph"] = reducer.static_graph;
  fact.fields["last_time"] = reducer.last_time;
  std::vector<std::string> names;
  for (const sources::RecordedParameter& parameter : reducer.not_ready) {
    names.push_back(parameter.name.empty() ? fmt::format("parameter {}", parameter.index)
                                           : parameter.name);
  }
  fact.fields["not_ready"] = std::move(names);
  return fact;
}

void put_place(Fact& fact, const RecordedEvent& event, const std::vector<CallSite>& sites) {
  fact.fields["time"] = event.time;
  if (!sites.empty()) {
    fact.fields["file"] = sites.front().file;
    fact.fields["line"] = static_cast<std::int64_t>(sites.front().line);
    fact.fields["function"] = sites.front().function;
  }
}

void put_place(Fact& fact, const RecordedEvent& event) {
  put_place(fact, event, user_sites(event.stack));
}

/// Adds what a forked child inherited that does not work in it.
void add_fork(JobModel& job, const Recording& recording, const RecordedEvent& event) {
  const auto parent = static_cast<std::int64_t>(recording.pid);
  if (event.detail > 0) {
    job.facts.push_back({.rank = recording.rank,
                         .pid = static_cast<pid_t>(event.count),
                         .kind = "openmp-team",
                         .fields = {{"before_fork", true},
                                    {"threads", static_cast<std::int64_t>(event.detail)},
                                    {"parent_pid", parent}}});
  }
  if (event.peer >= 0 && event.text.empty()) {
    job.facts.push_back({.rank = recording.rank,
                         .pid = static_cast<pid_t>(event.count),
                         .kind = "cuda-fork",
                         .fields = {{"parent_pid", parent}, {"used", false}}});
  }
}

void add_cuda_after_fork(JobModel& job, const Recording& recording, const RecordedEvent& event) {
  Fact fact{.rank = recording.rank,
            .pid = recording.pid,
            .kind = "cuda-fork",
            .fields = {{"parent_pid", static_cast<std::int64_t>(event.peer)},
                       {"used", true},
                       {"call", event.text}}};
  if (event.count >= 0) {
    fact.fields["device"] = event.count;
  }
  put_place(fact, event);
  job.facts.push_back(std::move(fact));
}

/// Adds the GPU on which a rank has started CUDA, if it is only one. Several prove nothing, because
/// libraries query the free memory of all GPUs.
void add_cuda_context(JobModel& job, const Recording& recording) {
  if (!recording.rank || recording.one_device || !std::has_single_bit(recording.cuda_devices)) {
    return;
  }
  const Process* const known = rank_process(job, *recording.rank);
  if (known != nullptr && known->pid != recording.pid) {
    return;  // a worker process of the rank
  }
  const std::int64_t device = std::countr_zero(recording.cuda_devices);
  Fact fact{.rank = recording.rank,
            .pid = recording.pid,
            .kind = "cuda-context",
            .fields = {{"device", device}}};
  for (const RecordedEvent& event : recording.events) {
    if (event.kind == "cuda-context" && event.count == device) {
      put_place(fact, event);
    }
  }
  job.facts.push_back(std::move(fact));
}

/// Out of descriptors or space: `what` is the failed call or the file.
void add_failure(JobModel& job, const Recording& recording, const RecordedEvent& event,
                 std::string kind, std::string what, std::int64_t error) {
  const bool path = what.starts_with('/');
  Fact fact{.rank = recording.rank,
            .pid = recording.pid,
            .kind = std::move(kind),
            .fields = {{path ? "path" : "call", std::move(what)}, {"errno", error}}};
  if (event.count > 0) {
    fact.fields["bytes"] = event.count;
  }
  put_place(fact, event);
  job.facts.push_back(std::move(fact));
}

std::string segment_path(const std::string& name) {
  return name.starts_with('/') ? "/dev/shm" + name : "/dev/shm/" + name;
}

void add_shared_memory_failure(JobModel& job, const Recording& recording,
                               const RecordedEvent& event) {
  const std::int64_t error = event.kind == "shm-size" ? event.peer : -event.count;
  if (error == EMFILE || error == ENFILE) {
    add_failure(job, recording, event, "fd-failure", "shm_open", error);
  } else if (error > 0 && error != EEXIST) {
    add_failure(job, recording, event, "shm-failure", segment_path(event.text), error);
  }
}

void add_event(JobModel& job, const Recording& recording, const RecordedEvent& event) {
  if (event.kind == "fork") {
    add_fork(job, recording, event);
  } else if (event.kind == "cuda-after-fork") {
    add_cuda_after_fork(job, recording, event);
  } else if (event.kind == "shm-size" || event.kind == "shm-open") {
    add_shared_memory_failure(job, recording, event);
  } else if (event.kind == "descriptors-full") {
    add_failure(job, recording, event, "fd-failure", event.text, event.peer);
  } else if (event.kind == "graph-launch") {
    Fact fact{.rank = recording.rank,
              .pid = recording.pid,
              .kind = event.kind,
              .fields = {{"launches", event.count}, {"calls", event.peer}}};
    put_place(fact, event);
    job.facts.push_back(std::move(fact));
  } else if (event.kind == "no-space") {
    const bool shared = event.text.starts_with("/dev/shm/") || event.text.starts_with("/memfd:");
    add_failure(job, recording, event, shared ? "shm-failure" : "disk-failure", event.text,
                event.peer);
  }
}

/// MPI ended the process, in MPI_Abort or in a call that failed.
const RecordedEvent* end_by_mpi(const Recording& recording) {
  const auto found = std::find_if(recording.events.rbegin(), recording.events.rend(),
                                  [](const RecordedEvent& event) {
                                    return event.kind == "exit" && event.text.starts_with("MPI_");
                                  });
  return found == recording.events.rend() ? nullptr : &*found;
}

/// The line at which Python or MPI ended the process.
void add_end(JobModel& job, const Recording& recording) {
  if (const RecordedEvent* const end = end_by_mpi(recording); recording.rank && end != nullptr) {
    Fact fact{.rank = recording.rank,
              .pid = recording.pid,
              .kind = "ended-at",
              .fields = {{"call", end->text}, {"status", end->count}}};
    put_place(fact, *end, CompiledSites().user_sites(end->stack));
    job.facts.push_back(std::move(fact));
    return;
  }
  if (!recording.rank || !recording.exit || recording.exit->kind == "exec" ||
      recording.exit->stack.empty() || !is_user_file(recording.exit->stack.front().file)) {
    return;  // multiprocessing ends its children itself
  }
  Fact fact{.rank = recording.rank,
            .pid = recording.pid,
            .kind = "ended-at",
            .fields = {{"call", recording.exit->kind},
                       {"status", static_cast<std::int64_t>(recording.exit->value)}}};
  put_place(fact, {.kind = "exit", .time = recording.exit->time, .stack = recording.exit->stack});
  job.facts.push_back(std::move(fact));
}

/// Adds the newest children of a rank that it has not waited for, and the lines that started them.
/// A child of vfork has no pid when it is recorded and is found by its time.
void add_unwaited_children(JobModel& job, const Recording& recording) {
  constexpr int kMost = 64;
  std::set<std::int64_t> ended;
  for (const RecordedEvent& event : recording.events) {
    if (event.kind == "child-exit") {
      ended.insert(event.count);
    }
  }
  int added = 0;
  for (auto event = recording.events.rbegin(); event != recording.events.rend() && added < kMost;
       ++event) {
    if (!recording.rank || event->kind != "fork" || ended.contains(event->count)) {
      continue;
    }
    Fact fact{.rank = recording.rank,
              .pid = std::nullopt,
              .kind = "child-started",
              .fields = {{"parent_pid", static_cast<std::int64_t>(recording.pid)}}};
    if (event->count > 0) {
      fact.pid = static_cast<pid_t>(event->count);
    }
    put_place(fact, *event);
    job.facts.push_back(std::move(fact));
    ++added;
  }
}

/// One fact for everything that the process mapped from /dev/shm, with the name of the largest
/// segment.
void add_mapped_segments(JobModel& job, const Recording& recording) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 48;  // larger values come from a torn record
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  const sources::RecordedSegment* largest = nullptr;
  for (const sources::RecordedSegment& segment : recording.segments) {
    if (segment.mapped) {
      ++count;
      bytes += std::clamp<std::int64_t>(segment.bytes, 0, kLargest);
      largest = largest == nullptr || segment.bytes > largest->bytes ? &segment : largest;
    }
  }
  if (largest != nullptr) {
    job.facts.push_back(
        {.rank = recording.rank,
         .pid = recording.pid,
         .kind = "shm-mapped",
         .fields = {{"count", count}, {"bytes", bytes}, {"path", segment_path(largest->name)}}});
  }
}

/// Adds what the process created in /dev/shm and did not remove, with the line that created it.
void add_made_segments(JobModel& job, const Recording& recording) {
  for (const sources::RecordedSegment& segment : recording.segments) {
    if (!segment.created || segment.unlinked) {
      continue;
    }
    Fact fact{.rank = recording.rank,
              .pid = recording.pid,
              .kind = "shm-segment",
              .fields = {{"path", segment_path(segment.name)},
                         {"bytes", segment.bytes},
                         {"creator_pid", static_cast<std::int64_t>(recording.pid)},
                         {"recorded", true}}};
    const auto made = std::find_if(
        recording.events.rbegin(), recording.events.rend(), [&segment](const RecordedEvent& event) {
          return event.kind == "shm-open" && event.count >= 0 && event.text == segment.name;
        });
    if (made != recording.events.rend()) {
      put_place(fact, *made);
    }
    job.facts.push_back(std::move(fact));
  }
}

/// The last lines, which hold the traceback.
std::string end_of_output(const Recording& recording) {
  constexpr std::size_t kMost = 8192;
  std::string text = without_secrets(recording.standard_error);
  if (text.size() > kMost) {
    text.erase(0, text.find('\n', text.size() - kMost) + 1);
  }
  return text;
}

/// The store key that a thread waits for, if its frames do not show it: that of the last store call
/// that has not returned.
void name_store_key(JobModel& job, const Recording& recording) {
  const auto last = std::find_if(recording.events.rbegin(), recording.events.rend(),
                                 [](const RecordedEvent& event) { return event.kind == "store"; });
  if (last == recording.events.rend() || last->state != sources::RecordedState::kStarted ||
      last->text.empty() || job.observations.empty()) {
    return;
  }
  for (Process& process : job.observations.back().processes) {
    for (Thread& thread : process.threads) {
      const bool asks = process.pid == recording.pid && thread.waits_on &&
                        thread.waits_on->kind == "store-key" && thread.waits_on->target.empty();
      if (asks) {
        thread.waits_on->target = last->text;
      }
    }
  }
}

}  // namespace

std::vector<CallSite> user_sites(const std::vector<sources::RecordedFrame>& stack) {
  std::vector<CallSite> sites;
  for (const sources::RecordedFrame& frame : stack) {
    sites.push_back({frame.file, frame.line, frame.function});
  }
  return user_sites(sites);
}

void add_recorded_facts(JobModel& job, const Recording& recording) {
  for (const sources::RecordedReducer& reducer : recording.reducers) {
    job.facts.push_back(reducer_fact(recording, reducer));
  }
  if (recording.parent_team) {
    job.facts.push_back(
        {.rank = recording.rank,
         .pid = recording.pid,
         .kind = "openmp-team",
         .fields = {{"before_fork", true},
                    {"parent_pid", static_cast<std::int64_t>(*recording.parent_team)}}});
  }
  for (const RecordedEvent& event : recording.events) {
    add_event(job, recording, event);
  }
  add_cuda_context(job, recording);
  add_end(job, recording);
  add_unwaited_children(job, recording);
  add_mapped_segments(job, recording);
  name_store_key(job, recording);
  for (const sources::RecordedWait& wait : recording.waits) {
    job.facts.push_back({.rank = recording.rank,
                         .pid = recording.pid,
                         .kind = "thread-wait",
                         .fields = {{"tid", static_cast<std::int64_t>(wait.tid)},
                                    {"what", wait.what},
                                    {"since", wait.since}}});
  }
  add_gpu_facts(job, recording);
  add_made_segments(job, recording);
  if (recording.forked && recording.rank && !recording.standard_error.empty()) {
    job.facts.push_back({.rank = recording.rank,
                         .pid = recording.pid,
                         .kind = "child-output",
                         .fields = {{"text", end_of_output(recording)}}});
  }
  if (!recording.standard_error.empty()) {
    job.logs.push_back({.rank = recording.rank, .text = without_secrets(recording.standard_error)});
  }
}

void add_former_output(JobModel& job, const std::vector<Recording>& recordings) {
  for (const Recording& recording : recordings) {
    if (recording.superseded && recording.rank && !recording.standard_error.empty()) {
      job.facts.push_back({.rank = recording.rank,
                           .pid = recording.pid,
                           .kind = "former-output",
                           .fields = {{"text", without_secrets(recording.standard_error)}}});
    }
  }
}

}  // namespace ddpdoctor::model
