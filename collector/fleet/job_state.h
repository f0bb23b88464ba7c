// SPDX-License-Identifier: Apache-2.0
// The marks of all nodes → how the job stands, and when it is time to look at it. Memory grows with
// ranks and groups, not with time. Nothing here is a verdict: it says when to ask the nodes.
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

/// When to look, in seconds.
struct Limits {
  double hang_timeout = 30;  // without a new collective of any rank
  double silence = 2.5;      // without a word of a node
  double settle = 0.5;  // from the first difference or alarm to the look: the rest of it arrives
};

enum class Reason {
  kMismatch,  // two ranks' calls differ at one sequence number
  kProvable,  // a node has proof of its own, or ended with a failure while others run
  kStill,     // no rank moves
  kSilent,    // a node is not heard any more
  kEnded      // every node's part is over
};

struct Suspicion {
  Reason reason = Reason::kStill;
  std::string text;  // for people: which group, which ranks, which nodes
};

/// A node as it was heard last.
struct NodeState {
  NodeMarks marks;
  double heard = 0;  // by our steady clock, seconds
  double ahead = 0;  // its clock against ours, seconds
  bool clock_known = false;
  bool silent = false;  // said once
};

class JobState {
 public:
  explicit JobState(const Limits& limits) : limits_(limits) {}

  /// `now` by a steady clock, `wall` since the epoch; no `wall` when the message is an old one: the
  /// node must say something within a second. False when it is no newer than what is known.
  bool hear(NodeMarks marks, double now, std::optional<double> wall);
  /// Nothing could be heard until now: no node was silent.
  void was_deaf(double now);
  /// The next reason to look, each once; the gravest first.
  std::optional<Suspicion> suspicion(double now);

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
  /// Members of the world that no node speaks of.
  [[nodiscard]] std::vector<int> unheard_ranks() const;
  /// Nodes whose ranks meet elsewhere than those of the others; empty = one job.
  [[nodiscard]] std::string other_job() const;
  /// Every known node has ended.
  [[nodiscard]] bool all_ended() const;

 private:
  /// Hashes that were told at some sequence numbers of a group, and by whom. Older ones are
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
    double quiet_until = 0;   // a difference was looked into
    double patience = 0;
    std::string text;
  };

  void take_over_ranks(const NodeMarks& marks, double now);
  void notice_lives(const NodeMarks& before, const NodeMarks& now);
  void compare(const RankMark& rank, const GroupMark& mark, double now);
  void compare_at(Group& group, const RankMark& rank, const GroupMark& mark, std::uint32_t sequence,
                  std::uint32_t hash, double now);
  std::optional<Suspicion> mismatch(double now);
  std::optional<Suspicion> provable(double now);
  std::optional<Suspicion> silence(double now);
  std::optional<Suspicion> stillness(double now);
  std::optional<Suspicion> end(double now);

  Limits limits_;
  std::map<std::string, NodeState> nodes_;
  std::unordered_map<std::string, Group> groups_;
  std::map<int, std::string> owners_;  // of ranks: nodes
  int world_size_ = -1;
  double moved_ = 0;
  double next_look_ = 0;    // seconds of stillness; 0 = as the limits say
  double alarm_since_ = 0;  // 0 = none
  std::string alarm_;
  bool end_said_ = false;
};

/// "node3 (ranks 4-5)"
std::string said(const NodeState& node);

}  // namespace ddpdoctor::fleet
