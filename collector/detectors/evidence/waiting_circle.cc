// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/waiting_circle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

// Members of a knot that are searched; people read only a few.
constexpr std::size_t kMostMembers = 64;

/// How unspecific an edge is: a wait that only one thread can end is the most specific; a semaphore
/// never shows its holders, nor does a Python lock without source.
bool is_nameless(const BlockedThread& one) {
  return object_kind(one) == "semaphore" ||
         (one.blockage == Blockage::kPrivateLock && !one.owner_known);
}

constexpr std::size_t kNameless = 1000;

std::size_t vagueness(const BlockedThreads& blocked, std::size_t at) {
  return blocked.nodes[at].enders.size() + (is_nameless(blocked.threads[at]) ? kNameless : 0);
}

/// A forked process has both ends of its parent's pipes: it could serve itself, but another process
/// is more likely.
std::size_t unlikeliness(const BlockedThreads& blocked, std::size_t at, std::size_t next) {
  const auto own = [&blocked, at](std::size_t ender) {
    return blocked.threads[ender].process == blocked.threads[at].process;
  };
  const std::vector<std::size_t>& enders = blocked.nodes[at].enders;
  const bool inherited = blocked.threads[at].blockage == Blockage::kObject && own(next) &&
                         !std::all_of(enders.begin(), enders.end(), own);
  return inherited ? kNameless : 0;
}

using Circle = std::vector<std::size_t>;

/// The most specific path from `start` back to itself, and its vagueness.
std::pair<std::size_t, Circle> way_back(const BlockedThreads& blocked, const Circle& knot,
                                        std::size_t start) {
  constexpr auto kFar = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> cost(blocked.nodes.size(), kFar);
  std::vector<std::size_t> from(blocked.nodes.size(), kFar);
  std::set<std::pair<std::size_t, std::size_t>> todo = {{0, start}};
  std::size_t best = kFar;
  std::size_t last = kFar;
  while (!todo.empty()) {
    const auto [so_far, at] = *todo.begin();
    todo.erase(todo.begin());
    for (const std::size_t next : blocked.nodes[at].enders) {
      const std::size_t next_cost =
          so_far + vagueness(blocked, at) + unlikeliness(blocked, at, next);
      if (next == start && next_cost < best) {
        best = next_cost;
        last = at;
      } else if (next != start && next_cost < cost[next] &&
                 std::binary_search(knot.begin(), knot.end(), next)) {
        cost[next] = next_cost;
        from[next] = at;
        todo.insert({next_cost, next});
      }
    }
  }
  Circle path;
  for (std::size_t at = last; at != kFar; at = at == start ? kFar : from[at]) {
    path.push_back(at);
  }
  std::reverse(path.begin(), path.end());
  return {best, path};
}

Circle clearest_circle(const BlockedThreads& blocked, const Circle& knot) {
  Circle best;
  std::size_t vague = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < std::min(knot.size(), kMostMembers); ++i) {
    auto [cost, path] = way_back(blocked, knot, knot[i]);
    if (!path.empty() && cost < vague) {
      vague = cost;
      best = std::move(path);
    }
  }
  return best;
}

bool crosses_processes(const BlockedThreads& blocked, const Circle& knot) {
  std::set<pid_t> pids;
  bool object = false;
  for (const std::size_t at : knot) {
    pids.insert(blocked.threads[at].process->pid);
    object = object || blocked.threads[at].blockage == Blockage::kObject ||
             blocked.threads[at].blockage == Blockage::kRpc;
  }
  return object && pids.size() > 1;
}

/// Acquired by the user's own line, not by a queue or pool of multiprocessing, whose locks are held
/// by the reader or writer.
bool takes_semaphore_itself(const BlockedThread& one) {
  const auto called = called_by_user(*one.thread);
  return object_kind(one) == "semaphore" &&
         std::none_of(called.begin(), called.end(), [](const model::Frame& frame) {
           return frame.file.ends_with("multiprocessing/queues.py") ||
                  frame.file.ends_with("multiprocessing/pool.py");
         });
}

/// The members of `knot` that wait for the most frequent semaphore.
Circle at_one_semaphore(const BlockedThreads& blocked, const Circle& knot) {
  std::map<std::string, Circle> by_object;
  for (const std::size_t at : knot) {
    if (takes_semaphore_itself(blocked.threads[at])) {
      by_object[blocked.threads[at].object->text("object").value_or("")].push_back(at);
    }
  }
  const auto most = std::max_element(
      by_object.begin(), by_object.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return most == by_object.end() ? Circle{} : most->second;
}

bool reads(const BlockedThread& one) {
  const std::string kind = object_kind(one);
  return (kind == "pipe" || kind == "socket") && one.object->text("operation") != "write";
}

/// A service and its idle worker, or that worker and a rank in a collective: input for the worker
/// may also come from a process outside the circle. The collective tells more.
bool is_idle_service(const BlockedThreads& blocked, const Circle& knot, const Circle& circle) {
  const auto in_collective = [&blocked](std::size_t at) {
    return blocked.threads[at].blockage == Blockage::kRanks;
  };
  const auto outside = [&circle](std::size_t at) {
    return std::find(circle.begin(), circle.end(), at) == circle.end();
  };
  const auto idle = [&](std::size_t at) {
    const auto& enders = blocked.nodes[at].enders;
    return reads(blocked.threads[at]) && std::any_of(enders.begin(), enders.end(), outside);
  };
  return std::any_of(knot.begin(), knot.end(), in_collective) &&
         std::any_of(circle.begin(), circle.end(), idle) &&
         std::all_of(circle.begin(), circle.end(), [&](std::size_t at) {
           return in_collective(at) || reads(blocked.threads[at]);
         });
}

/// Only locks without an owner close the cycle: the semaphore is more informative.
bool is_guess(const BlockedThreads& blocked, const Circle& circle) {
  return circle.empty() || std::any_of(circle.begin(), circle.end(), [&blocked](std::size_t at) {
           return is_nameless(blocked.threads[at]);
         });
}

}  // namespace

std::string object_kind(const BlockedThread& member) {
  return member.blockage == Blockage::kObject && member.object != nullptr
             ? member.object->text("object_kind").value_or("")
             : std::string();
}

std::optional<WaitingCircle> circle_of(const BlockedThreads& blocked,
                                       const std::vector<std::size_t>& knot) {
  const Circle semaphore = at_one_semaphore(blocked, knot);
  const bool alone = knot.size() == 1 && !semaphore.empty();
  if (!alone && !crosses_processes(blocked, knot)) {
    return std::nullopt;
  }
  WaitingCircle out{.members = {}, .lost = false, .all = knot.size()};
  Circle chosen = clearest_circle(blocked, knot);
  if (is_guess(blocked, chosen) && !semaphore.empty()) {
    chosen = semaphore;
    out.lost = true;
  }
  if (is_idle_service(blocked, knot, chosen)) {
    return std::nullopt;
  }
  for (const std::size_t at : chosen) {
    out.members.push_back(&blocked.threads[at]);
  }
  return out.members.empty() ? std::nullopt : std::optional(out);
}

std::string process_name(const model::Process& process) {
  const bool is_rank = process.role == model::Role::kRank && process.rank;
  return is_rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
}

std::string member_name(const BlockedThread& member, const WaitingCircle& circle) {
  const model::Process& process = *member.process;
  const std::string name = process_name(process);
  const bool twice =
      std::count_if(circle.members.begin(), circle.members.end(),
                    [&process](const auto* other) { return other->process == &process; }) > 1;
  return twice ? fmt::format("{} of {}", thread_name(*member.thread), name) : name;
}

std::string waiting_words(const BlockedThread& member, const std::string& next) {
  switch (member.blockage) {
    case Blockage::kRpc:
      return "waiting for the answer to an RPC from " + next;
    case Blockage::kPrivateLock:
      return "waiting for a lock held by " + next;
    case Blockage::kRanks:
      return "waiting in a collective for " + next;
    case Blockage::kObject:
    case Blockage::kNone:
      break;
  }
  const std::string kind = object_kind(member);
  if (waits_for_batch(*member.thread)) {
    return "waiting for a batch from " + next;
  }
  if (kind == "process") {
    return fmt::format("waiting for {} to exit", next);
  }
  if (kind == "file-lock") {
    const std::string path = member.object->text("path").value_or("");
    return fmt::format("waiting for the lock on {}, held by {}", base::file_name(path), next);
  }
  if (kind == "semaphore" &&
      python_frame_in(*member.thread, "multiprocessing/queues.py") != nullptr) {
    return fmt::format("waiting for its turn on a queue that {} uses", next);
  }
  if (kind == "semaphore" || kind == "futex") {
    return fmt::format("waiting for a {} shared with {}", kind, next);
  }
  const bool writes = member.object->text("operation") == "write";
  return writes ? fmt::format("waiting to write into a full {} until {} reads it", kind, next)
                : fmt::format("waiting to read from a {} until {} writes into it", kind, next);
}

}  // namespace ddpdoctor::detectors
