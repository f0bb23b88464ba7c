// SPDX-License-Identifier: Apache-2.0
// Computes the state of the job from the marks of all nodes, and when to take a snapshot. Memory
// grows with ranks and groups, not with time. Gives reasons to ask the nodes, never a verdict.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/fleet/marks.h"

namespace ddpdoctor::fleet {

/// When to take a snapshot, in seconds.
struct Limits {
  double hang_timeout = 30;  // without a new collective of any rank
  double silence = 2.5;      // without a message from a node
  // From the first difference or alarm to the snapshot, so that the remaining marks arrive.
  double settle = 0.5;
};

enum class Reason {
  kMismatch,  // two ranks' calls differ at one sequence number
  kProvable,  // a node has its own proof, or ended with a failure while others run
  kStill,     // no rank makes progress
  kSilent,    // a node sends no messages any more
  kEnded      // every node's part has ended
};

struct Suspicion {
  Reason reason = Reason::kStill;
  std::string text;  // for people: names the group, ranks and nodes
};

/// The newest known state of a node.
struct NodeState {
  NodeMarks marks;
  double heard = 0;  // seconds of our steady clock
  double ahead = 0;  // seconds its clock is ahead of ours
  bool clock_known = false;
  bool silent = false;  // reported once
};

class JobState {
 public:
  explicit JobState(const Limits& limits) : limits_(limits) {}

  /// `now` is a steady clock, `wall` is seconds since the epoch. An old message has no `wall`: the
  /// node must then send a new one within a second. Returns false when the message is not newer
  /// than what is known.
  bool hear(NodeMarks marks, double now, std::optional<double> wall);
  /// Call after a time in which no message could arrive: no node counts as silent for it.
  void was_deaf(double now);
  /// The next reason for a snapshot, each once, the most serious first.
  std::optional<Suspicion> suspicion(double now);
  /// Nodes that have become silent, each once; also one of the reasons above.
  std::optional<Suspicion> silence(double now);

  [[nodiscard]] const std::map<std::string, NodeState>& nodes() const {
    return nodes_;
  }
  [[nodiscard]] bool is_silent(const NodeState& node, double now) const {
    return !node.marks.ended && now - node.heard > limits_.silence;
  }
  /// Seconds since any rank began a collective.
  [[nodiscard]] double still_for(double now) const {
    return now - moved_;
  }
  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] int world_size() const {
    return world_size_;
  }
  /// Members of the world that no node reports.
  [[nodiscard]] std::vector<int> unheard_ranks() const;
  /// Nodes whose ranks use another rendezvous address than the others; empty = one job.
  [[nodiscard]] std::string other_job() const;
  /// Every known node has ended.
  [[nodiscard]] bool all_ended() const;

 private:
  /// Hashes received for some sequence numbers of a group, and their senders. Older ones are
  /// overwritten: ranks are at most some thousand calls apart.
  struct Group {
    struct Told {
      std::uint32_t sequence = 0;
      std::uint32_t hash = 0;
      std::int32_t rank = -1;
    };
    static constexpr std::size_t kTold = 64;
    std::array<Told, kTold> told{};
    double differ_since = 0;  // 0 = they agree
    double quiet_until = 0;   // a difference that was investigated already
    double patience = 0;
    std::string text;
  };

  void take_over_ranks(const NodeMarks& marks, double now);
  void notice_lives(const std::unordered_map<int, const RankMark*>& before, const NodeMarks& now);
  void compare(const RankMark& rank, const GroupMark& mark, double now);
  void compare_at(Group& group, const RankMark& rank, const GroupMark& mark, std::uint32_t sequence,
                  std::uint32_t hash, double now);
  std::optional<Suspicion> mismatch(double now);
  std::optional<Suspicion> provable(double now);
  std::optional<Suspicion> stillness(double now);
  std::optional<Suspicion> end(double now);

  Limits limits_;
  std::map<std::string, NodeState> nodes_;
  std::unordered_map<std::string, Group> groups_;
  std::map<int, std::string> owners_;  // rank → node
  int world_size_ = -1;
  double moved_ = 0;
  double next_look_ = 0;    // seconds without progress; 0 = as in the limits
  double alarm_since_ = 0;  // 0 = none
  std::string alarm_;
  bool end_said_ = false;
};

/// "node3 (ranks 4-5)"
std::string said(const NodeState& node);

}  // namespace ddpdoctor::fleet
