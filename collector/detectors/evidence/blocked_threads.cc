// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/blocked_threads.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Process;
using model::Thread;

constexpr std::string_view kRpcFolder = "torch/distributed/rpc/";

bool runs_python(const Thread& thread) {
  return model::innermost_python(thread) != nullptr;
}

bool process_runs_python(const Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), runs_python);
}

/// In a call of torch.distributed.rpc that waits for its response.
bool waits_for_answer(const Thread& thread) {
  return asleep(thread) && (python_frame_in(thread, "torch/distributed/rpc/api.py",
                                            {"rpc_sync", "_invoke_rpc", "remote"}) != nullptr ||
                            model::has_native_frame(thread, "PyRRef::toHere"));
}

/// A thread of the agent's pool that serves a request of another process.
bool answers(const Thread& thread) {
  return python_frame_in(thread, "torch/distributed/rpc/internal.py", {"_run_function"}) != nullptr;
}

bool uses_rpc(const Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const Thread& thread) {
    return model::has_native_frame(thread, "torch::distributed::rpc::") ||
           std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
             return frame.file.find(kRpcFolder) != std::string::npos;
           });
  });
}

/// Serves requests about shared memory, or redraws a progress bar: no other thread waits for it.
bool only_assists(const Thread& thread) {
  return python_frame_in(thread, "multiprocessing/resource_sharer.py", {"_serve"}) != nullptr ||
         python_frame_in(thread, "tqdm/_monitor.py", {"run"}) != nullptr;
}

/// "server_read" in the user's waiting line `rpc_sync("server", server_read)`.
std::string function_asked(const model::JobModel& job, const Thread& thread) {
  constexpr std::array<std::string_view, 3> kCalls = {"rpc_sync", "rpc_async", "remote"};
  const model::Frame* user = own_user_frame(thread);
  const std::string text = user == nullptr
                               ? std::string()
                               : program::statement_at(lines_of(job, user->file), user->line);
  for (const program::Call& call : program::calls_in(text)) {
    const auto& passed = call.arguments;
    const bool asks =
        std::find(kCalls.begin(), kCalls.end(), program::last_name(call.callee)) != kCalls.end();
    if (asks && passed.size() > 1) {
      return std::string(program::last_name(passed[1]));
    }
  }
  return {};
}

/// This thread of the pool runs that function for another process.
bool runs_for_others(const Thread& thread, const std::string& function) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const model::Frame& frame) {
    return program::last_name(frame.function) == function;
  });
}

/// DataLoader polls its queue every five seconds, on both sides, without limit.
bool asks_for_ever(const Thread& thread) {
  return waits_for_batch(thread) || waits_for_indices(thread);
}

/// Python's own read or write. A wait in C++ code (gloo, the store, gRPC) may be ended by a thread
/// without Python.
bool is_pythons_own(const Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (frame.language == model::Language::kPython) {
      return true;
    }
    if (frame.function.find("c10d::") != std::string::npos ||
        frame.module.starts_with("libtorch") || frame.module.starts_with("libgloo") ||
        frame.module.starts_with("libnccl")) {
      return false;
    }
  }
  return true;  // a program without Python
}

/// `stop.wait()` in the main thread: a signal handler ends it.
bool awaits_signal(const Process& process, const Thread& thread) {
  const model::Frame* user = own_user_frame(thread);
  const auto called = called_by_user(thread);
  return &thread == model::main_thread(process) && user != nullptr &&
         std::all_of(called.begin(), called.end(), [](const model::Frame& frame) {
           return frame.language == model::Language::kNative ||
                  model::is_of_threading(model::python_wait(frame));
         });
}

/// In Event.wait of multiprocessing, which waits in a Condition: a program that serves until a
/// signal stops it looks the same.
bool awaits_event(const Thread& thread) {
  return std::count_if(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
           return frame.file.ends_with("multiprocessing/synchronize.py") &&
                  std::string_view(frame.function).ends_with("wait");
         }) > 1;
}

std::set<pid_t> pids_in(const model::Fact& fact) {
  std::set<pid_t> pids;
  for (const std::string& text : fact.list("enders")) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error == std::errc() && end == text.data() + text.size()) {
      pids.insert(pid);
    }
  }
  return pids;
}

class Builder {
 public:
  explicit Builder(const graph::Examination& examination)
      : examination_(examination),
        job_(examination.job),
        now_(model::latest(examination.job)),
        before_(model::previous(examination.job)) {
    for (const model::Fact* fact : model::facts(job_, "blocked-on")) {
      const auto tid = fact->number("tid");
      if (fact->pid && tid) {
        objects_[{*fact->pid, static_cast<pid_t>(*tid)}] = fact;
      }
    }
  }

  BlockedThreads build() {
    if (objects_.empty() || now_ == nullptr) {
      return {};
    }
    for (const Process* process : processes(job_)) {
      add_threads(*process);
    }
    out_.nodes.resize(out_.threads.size());
    for (std::size_t i = 0; i < out_.threads.size(); ++i) {
      decide(i);
    }
    return std::move(out_);
  }

 private:
  void add_threads(const Process& process) {
    if (!alive(process)) {
      ended_.insert(process.pid);
      return;
    }
    const bool python = process_runs_python(process);
    for (const Thread& thread : process.threads) {
      if ((python && !runs_python(thread)) || only_assists(thread)) {
        continue;
      }
      places_[process.pid].push_back(out_.threads.size());
      const auto fact = objects_.find({process.pid, thread.tid});
      out_.threads.push_back({.process = &process,
                              .thread = &thread,
                              .object = fact == objects_.end() ? nullptr : fact->second});
    }
  }

  /// Ran between snapshots: the object it waits for changes.
  [[nodiscard]] bool ran(const Process& process, const Thread& thread) const {
    if (before_ == nullptr) {
      return false;
    }
    for (const Process& then : before_->processes) {
      if (then.pid != process.pid) {
        continue;
      }
      for (const Thread& one : then.threads) {
        if (one.tid == thread.tid) {
          return one.run_count && thread.run_count && *one.run_count != *thread.run_count;
        }
      }
    }
    return true;  // it is a new process
  }

  void block(std::size_t at, Blockage how, std::vector<std::size_t> enders, bool all = false) {
    out_.threads[at].blockage = how;
    out_.nodes[at] = {.goes_on = false, .needs_all = all, .enders = std::move(enders)};
  }

  [[nodiscard]] std::vector<std::size_t> threads_of(pid_t pid, std::size_t except) const {
    std::vector<std::size_t> found;
    const auto there = places_.find(pid);
    if (there != places_.end()) {
      std::copy_if(there->second.begin(), there->second.end(), std::back_inserter(found),
                   [except](std::size_t one) { return one != except; });
    }
    return found;
  }

  [[nodiscard]] std::optional<std::size_t> place_of(const Thread* thread) const {
    for (std::size_t i = 0; i < out_.threads.size(); ++i) {
      if (out_.threads[i].thread == thread) {
        return i;
      }
    }
    return std::nullopt;
  }

  void decide(std::size_t at) {
    const BlockedThread& one = out_.threads[at];
    const Thread& thread = *one.thread;
    const bool limited = thread.waits_on && thread.waits_on->limit;
    if (!asleep(thread) || (thread.waits_on && thread.waits_on->kind == "gil") ||
        ((limited || ran(*one.process, thread)) && !asks_for_ever(thread))) {
      return;
    }
    if (waits_for_answer(thread)) {
      decide_rpc(at);
    } else if (const graph::Standing* standing = standing_in(*one.process, thread);
               standing != nullptr) {
      decide_ranks(at, *standing);
    } else if (one.object != nullptr && !one.object->flag("open").value_or(true) &&
               !one.object->flag("ready").value_or(true)) {
      if (one.object->text("object_kind") == "lock") {
        decide_lock(at);
      } else if (is_pythons_own(thread) && !awaits_event(thread)) {
        decide_object(at);
      }
    }
  }

  /// This is the thread in which the rank waits for other ranks.
  const graph::Standing* standing_in(const Process& process, const Thread& thread) const {
    if (process.role != model::Role::kRank || !process.rank) {
      return nullptr;
    }
    const graph::Standing* standing = examination_.standing(*process.rank);
    return standing != nullptr && standing->thread == &thread && standing->waits_for_ranks()
               ? standing
               : nullptr;
  }

  void decide_ranks(std::size_t at, const graph::Standing& standing) {
    std::vector<std::size_t> enders;
    for (const graph::Edge* edge : examination_.waits.from(fmt::format("rank:{}", standing.rank))) {
      const bool by_ranks =
          edge->kind == graph::EdgeKind::kCollective || edge->kind == graph::EdgeKind::kPeer;
      const auto found = std::find_if(
          examination_.standings.begin(), examination_.standings.end(),
          [edge](const auto& other) { return edge->to == fmt::format("rank:{}", other.rank); });
      const auto place = !by_ranks || found == examination_.standings.end()
                             ? std::nullopt
                             : place_of(found->thread);
      if (by_ranks && !place) {
        return;  // a rank without evidence
      }
      if (place) {
        enders.push_back(*place);
      }
    }
    if (!enders.empty()) {
      block(at, Blockage::kRanks, std::move(enders), true);
    }
  }

  /// A request sent long ago is being served by a thread of the pool, or by none.
  void decide_rpc(std::size_t at) {
    std::vector<std::size_t> enders;
    for (const bool own : {false, true}) {  // requests of a process to itself are rare
      for (std::size_t i = 0; i < out_.threads.size() && (!own || enders.empty()); ++i) {
        const bool same = out_.threads[i].process == out_.threads[at].process;
        if (i != at && same == own && answers(*out_.threads[i].thread)) {
          enders.push_back(i);
        }
      }
    }
    const std::string asked = function_asked(job_, *out_.threads[at].thread);
    std::vector<std::size_t> running;
    std::copy_if(enders.begin(), enders.end(), std::back_inserter(running), [&](std::size_t i) {
      return !asked.empty() && runs_for_others(*out_.threads[i].thread, asked);
    });
    if (!enders.empty()) {
      block(at, Blockage::kRpc, running.empty() ? std::move(enders) : std::move(running));
    }
  }

  void decide_lock(std::size_t at) {
    const BlockedThread& one = out_.threads[at];
    const Thread* holder = holder_of_wanted_lock(job_, *one.process, *one.thread);
    if (const auto place = holder == nullptr ? std::nullopt : place_of(holder)) {
      block(at, Blockage::kPrivateLock, {*place});
      out_.threads[at].owner_known = true;
      return;
    }
    const model::Frame* python = model::innermost_python(*one.thread);
    const bool by_python =
        waits_for_private_lock(job_, *one.thread) ||
        (python != nullptr && model::is_of_own_threads(model::python_wait(*python)));
    auto enders = threads_of(one.process->pid, at);
    if (by_python && !enders.empty() && !uses_rpc(*one.process) &&
        !awaits_signal(*one.process, *one.thread)) {
      block(at, Blockage::kPrivateLock, std::move(enders));
    }
  }

  void decide_object(std::size_t at) {
    const BlockedThread& one = out_.threads[at];
    const bool joins = one.object->text("object_kind") == "process";
    std::vector<std::size_t> enders;
    for (const pid_t pid : pids_in(*one.object)) {
      if (ended_.contains(pid) && !joins) {
        continue;
      }
      const auto theirs = threads_of(pid, at);
      const bool own = pid == one.process->pid;
      if (theirs.empty() && !own) {
        return;  // it belongs to another job, is unreadable, or has exited
      }
      // A process ends when its main thread ends.
      const auto first = joins ? theirs.begin() : theirs.end();
      enders.insert(enders.end(), theirs.begin(), first == theirs.end() ? theirs.end() : first + 1);
    }
    block(at, Blockage::kObject, std::move(enders));
  }

  const graph::Examination& examination_;
  const model::JobModel& job_;
  const model::Observation* now_;
  const model::Observation* before_;
  std::map<std::pair<pid_t, pid_t>, const model::Fact*> objects_;
  std::map<pid_t, std::vector<std::size_t>> places_;
  std::set<pid_t> ended_;
  BlockedThreads out_;
};

}  // namespace

BlockedThreads blocked_threads(const graph::Examination& examination) {
  return Builder(examination).build();
}

}  // namespace ddpdoctor::detectors
