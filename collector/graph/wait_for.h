// SPDX-License-Identifier: Apache-2.0
// The wait-for graph of the whole job: ranks, threads, processes, files, keys. The node where the
// edges end is the culprit; a cycle is a deadlock.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/memo.h"
#include "collector/graph/divergence.h"
#include "collector/graph/standing.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

enum class EdgeKind {
  kCollective,
  kPeer,
  kMutex,
  kGil,
  kProcess,
  kPipe,
  kSocket,
  kFifo,
  kFileLock,
  kStoreKey,
  kImportLock,
  kThread,
  kStream,
  kOther
};

/// Nodes are "rank:0", "pid:77", "thread:123", "file:/path", "key:name", and kernel objects
/// ("pipe:[17]", "semaphore:0:1d:77+0").
struct Edge {
  std::string from;
  std::string to;
  EdgeKind kind = EdgeKind::kOther;
  std::string why;  // "all_reduce #1043 of default_pg"
};

/// The ranks that wait in one collective and all ranks that have not joined it. A rank's edges lead
/// only to the first of them.
struct CollectiveWait {
  model::RankSet waiting;
  model::RankSet missing;
  std::string why;
};

class WaitForGraph {
 public:
  void add(Edge edge);
  void add(CollectiveWait wait);
  /// The waits in collectives, each with its complete sets; at most 64.
  [[nodiscard]] const std::vector<CollectiveWait>& collective_waits() const {
    return collective_waits_;
  }
  [[nodiscard]] const std::vector<Edge>& edges() const {
    return edges_;
  }
  [[nodiscard]] std::vector<std::string> nodes() const;
  [[nodiscard]] std::vector<const Edge*> from(const std::string& node) const;
  /// Nodes that others wait for and that do not wait themselves.
  [[nodiscard]] std::vector<std::string> sinks() const;
  /// Simple cycles, each once, starting at its smallest node; the first 16. Computed once, in time
  /// linear in the edges if there is no cycle; valid until the next add().
  [[nodiscard]] const std::vector<std::vector<std::string>>& cycles() const;
  /// The sinks reachable from a node.
  [[nodiscard]] std::vector<std::string> ends_of_waiting(const std::string& node) const;

 private:
  std::size_t number(const std::string& node);

  std::vector<Edge> edges_;
  std::vector<std::string> names_;  // of the nodes, by number
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::vector<std::size_t>> targets_;  // of each node, ascending, each once
  std::vector<std::vector<std::size_t>> leaving_;  // of each node, its edges
  std::vector<CollectiveWait> collective_waits_;
  base::Memo memo_;
};

/// Builds the graph: a rank and its main thread are one node ("rank:N"); other threads are
/// "thread:TID", other processes "pid:PID".
WaitForGraph wait_for(const model::JobModel& job, const std::vector<Standing>& standings,
                      const std::vector<GroupView>& groups);

/// "rank 0 waits for rank 1 in group tp, rank 1 waits for rank 0 in group dp"
std::string cycle_sentence(const WaitForGraph& graph, const std::vector<std::string>& cycle);

}  // namespace ddpdoctor::graph
