// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/wait_for.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "collector/graph/blocked_call.h"
#include "collector/graph/members.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

// Edges from one waiting rank to the ranks it waits for: more edges add nothing and would be
// millions in a large job.
constexpr std::size_t kMostTargets = 16;
// Number of different waits whose missing ranks are all listed: each costs a pass over all ranks,
// and more would not be readable.
constexpr std::size_t kMostWaits = 64;

std::string rank_node(model::Rank rank) {
  return fmt::format("rank:{}", rank);
}

std::string group_name(const GroupView* view, const std::string& id) {
  const std::string& name = view == nullptr || view->group.name.empty() ? id : view->group.name;
  return name == "0" ? "default_pg" : name;
}

std::string reason(const Standing& standing, const GroupView* view) {
  const BlockedCall& call = *standing.call;
  std::string text = call.operation.empty() ? "a collective" : call.operation;
  if (call.sequence && *call.sequence > 0) {
    text += fmt::format(" #{}", *call.sequence);
  }
  const std::string group = group_name(view, call.group);
  const bool told = call.sequence || view != nullptr;  // otherwise the world is only an assumption
  return told && !group.empty() ? text + " of " + group : text;
}

bool stands_in(const Standing& other, const BlockedCall& call) {
  return other.call && other.call->group == call.group &&
         (other.call->operation == call.operation || other.call->operation.empty() ||
          call.operation.empty()) &&
         (!other.call->sequence || !call.sequence || *other.call->sequence == *call.sequence);
}

bool has_joined(const Standing& other, const Standing& waiting, const GroupView* view) {
  const BlockedCall& call = *waiting.call;
  if (stands_in(other, call)) {
    return true;
  }
  if (view == nullptr || !call.sequence) {
    return false;
  }
  const RankProgress* progress = view->progress_of(other.rank);
  if (progress == nullptr || progress->enqueued < *call.sequence) {
    return false;
  }
  // It has this number, but with another operation it has not joined this call.
  for (const Divergence& one : view->disagreements) {
    if (one.about != Disagreement::kOperation || one.sequence > *call.sequence) {
      continue;
    }
    for (const DivergentCall& side : one.calls) {
      if (side.ranks.contains(other.rank) != side.ranks.contains(waiting.rank)) {
        return false;
      }
    }
  }
  return true;
}

/// The ranks that the ranks in one call wait for. Computed once per call, because thousands of
/// ranks may wait in it.
class Targets {
 public:
  Targets(const std::vector<Standing>& standings, const std::vector<GroupView>& groups)
      : standings_(standings) {
    for (const GroupView& view : groups) {
      views_.emplace(view.group.id, &view);
    }
  }

  [[nodiscard]] const GroupView* view(const std::string& group) const {
    const auto found = views_.find(group);
    return found == views_.end() ? nullptr : found->second;
  }

  const std::vector<model::Rank>& of(const Standing& waiting) {
    const GroupView* view = this->view(waiting.call->group);
    const auto [known, added] = found_.try_emplace(key(waiting, view), waits_.size());
    if (added) {
      const bool all = waits_.size() < kMostWaits;
      waits_.push_back({.missing = ask(waiting, view, all), .waiting = {}, .why = {}});
      waits_.back().why = reason(waiting, view);
    }
    Wait& wait = waits_[known->second];
    wait.waiting.push_back(waiting.rank);
    return wait.missing;
  }

  void add_waits(WaitForGraph& graph) const {
    for (std::size_t i = 0; i < waits_.size() && i < kMostWaits; ++i) {
      if (!waits_[i].missing.empty()) {
        graph.add({.waiting = model::RankSet(waits_[i].waiting),
                   .missing = model::RankSet(waits_[i].missing),
                   .why = waits_[i].why});
      }
    }
  }

 private:
  struct Wait {
    std::vector<model::Rank> missing;
    std::vector<model::Rank> waiting;
    std::string why;
  };

  /// Ranks with the same key wait for the same ranks: same call and, if operations differ, same
  /// side.
  static std::string key(const Standing& waiting, const GroupView* view) {
    const BlockedCall& call = *waiting.call;
    std::string text =
        fmt::format("{}|{}|{}", call.group, call.sequence.value_or(-1), call.operation);
    for (const Divergence& one :
         view == nullptr ? std::vector<Divergence>() : view->disagreements) {
      if (one.about == Disagreement::kOperation) {
        for (const DivergentCall& side : one.calls) {
          text += side.ranks.contains(waiting.rank) ? '+' : '-';
        }
      }
    }
    return text;
  }

  [[nodiscard]] std::vector<model::Rank> ask(const Standing& waiting, const GroupView* view,
                                             bool all) const {
    std::vector<model::Rank> out;
    const model::RankSet members =
        view == nullptr ? model::RankSet() : members_of(*view, standings_);
    for (const Standing& other : standings_) {
      if (other.rank != waiting.rank && (members.empty() || members.contains(other.rank)) &&
          !has_joined(other, waiting, view)) {
        out.push_back(other.rank);
        if (!all && out.size() > kMostTargets) {
          break;
        }
      }
    }
    return out;
  }

  const std::vector<Standing>& standings_;
  std::map<std::string_view, const GroupView*> views_;
  std::unordered_map<std::string, std::size_t> found_;  // index in waits_
  std::vector<Wait> waits_;
};

void add_peer_edge(WaitForGraph& graph, const Standing& standing) {
  if (standing.call->peer) {
    const bool receives = standing.call->operation == "recv";
    graph.add({.from = rank_node(standing.rank),
               .to = rank_node(*standing.call->peer),
               .kind = EdgeKind::kPeer,
               .why = fmt::format("{} {} rank {}", standing.call->operation,
                                  receives ? "from" : "to", *standing.call->peer)});
  }
}

void add_rank_edges(WaitForGraph& graph, const std::vector<Standing>& standings,
                    const std::vector<GroupView>& groups) {
  Targets targets(standings, groups);
  for (const Standing& standing : standings) {
    if (!standing.call || !standing.waits_for_ranks()) {
      continue;
    }
    if (standing.activity == Activity::kPointToPoint) {
      add_peer_edge(graph, standing);
      continue;
    }
    std::size_t added = 0;
    for (const model::Rank target : targets.of(standing)) {
      if (target != standing.rank && ++added <= kMostTargets) {
        graph.add({.from = rank_node(standing.rank),
                   .to = rank_node(target),
                   .kind = EdgeKind::kCollective,
                   .why = reason(standing, targets.view(standing.call->group))});
      }
    }
  }
  targets.add_waits(graph);
}

constexpr std::array<std::pair<std::string_view, EdgeKind>, 13> kKinds = {
    {{"mutex", EdgeKind::kMutex},
     {"gil", EdgeKind::kGil},
     {"process", EdgeKind::kProcess},
     {"pipe", EdgeKind::kPipe},
     {"socket", EdgeKind::kSocket},
     {"fifo", EdgeKind::kFifo},
     {"file-lock", EdgeKind::kFileLock},
     {"lock-file", EdgeKind::kFileLock},
     {"store-key", EdgeKind::kStoreKey},
     {"import-lock", EdgeKind::kImportLock},
     {"semaphore", EdgeKind::kMutex},
     {"thread", EdgeKind::kThread},
     {"stream", EdgeKind::kStream}}};

EdgeKind edge_kind(std::string_view waits_on) {
  const auto* const found = std::find_if(
      kKinds.begin(), kKinds.end(), [waits_on](const auto& one) { return one.first == waits_on; });
  return found == kKinds.end() ? EdgeKind::kOther : found->second;
}

/// Node names of threads and processes: a rank's main thread and process are both the rank.
class Nodes {
 public:
  explicit Nodes(const model::Observation& now) {
    for (const model::Process& process : now.processes) {
      const bool is_rank = process.role == model::Role::kRank && process.rank;
      const std::string own =
          is_rank ? rank_node(*process.rank) : fmt::format("pid:{}", process.pid);
      names_[fmt::format("pid:{}", process.pid)] = own;
      const model::Thread* main = model::main_thread(process);
      for (const model::Thread& thread : process.threads) {
        const std::string name = fmt::format("thread:{}", thread.tid);
        names_[name] = &thread == main ? own : name;
      }
    }
  }

  [[nodiscard]] std::string of(const std::string& target) const {
    const auto found = names_.find(target);
    return found == names_.end() ? target : found->second;
  }

 private:
  std::map<std::string, std::string> names_;
};

std::string target_node(const Nodes& nodes, const model::WaitsOn& waits) {
  if (waits.target.empty()) {
    return {};
  }
  const bool named = waits.target.find(':') != std::string::npos;
  if (!named && waits.kind == "store-key") {
    return "key:" + waits.target;
  }
  return nodes.of(waits.target);
}

void add_thread_edges(WaitForGraph& graph, const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  if (now == nullptr) {
    return;
  }
  const Nodes nodes(*now);
  for (const model::Process& process : now->processes) {
    for (const model::Thread& thread : process.threads) {
      if (waits_for_database(thread)) {
        const pid_t holder = holder_of_database(job, process);
        if (holder != 0) {
          graph.add({.from = nodes.of(fmt::format("thread:{}", thread.tid)),
                     .to = nodes.of(fmt::format("pid:{}", holder)),
                     .kind = EdgeKind::kFileLock,
                     .why = "the lock of an SQLite database"});
        }
        continue;
      }
      if (!thread.waits_on || thread.waits_on->kind == "timer") {  // a timer is not a node
        continue;
      }
      const pid_t holder =
          thread.waits_on->kind == "lock-file" ? holder_of_lock_file(job, process) : pid_t{0};
      const std::string to = holder != 0 ? nodes.of(fmt::format("pid:{}", holder))
                                         : target_node(nodes, *thread.waits_on);
      const std::string from = nodes.of(fmt::format("thread:{}", thread.tid));
      if (!to.empty() && to != from) {
        const std::string& detail = thread.waits_on->detail;
        graph.add(
            {.from = from,
             .to = to,
             .kind = edge_kind(thread.waits_on->kind),
             .why = detail.empty() ? thread.waits_on->kind : thread.waits_on->kind + " " + detail});
      }
    }
  }
}

/// Kernel objects that several processes could release: their waiters are drawn, and the facts list
/// the processes. They get no edges, because any one process suffices.
void add_object_edges(WaitForGraph& graph, const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  const auto facts = model::facts(job, "blocked-on");
  if (now == nullptr || facts.empty()) {
    return;
  }
  const Nodes nodes(*now);
  for (const model::Fact* fact : facts) {
    const std::string kind = fact->text("object_kind").value_or("");
    const auto tid = static_cast<pid_t>(fact->number("tid").value_or(0));
    const std::string from = nodes.of(fmt::format("thread:{}", tid));
    const bool own = kind == "lock" || kind == "other";  // inside the process; a terminal or a file
    if (!own && graph.from(from).empty()) {
      graph.add({.from = from,
                 .to = fact->text("object").value_or(""),
                 .kind = edge_kind(kind),
                 .why = fmt::format("{} of a {}", fact->text("operation").value_or("wait"), kind)});
    }
  }
}

}  // namespace

WaitForGraph wait_for(const model::JobModel& job, const std::vector<Standing>& standings,
                      const std::vector<GroupView>& groups) {
  WaitForGraph graph;
  add_rank_edges(graph, standings, groups);
  add_thread_edges(graph, job);
  add_object_edges(graph, job);
  return graph;
}

}  // namespace ddpdoctor::graph
