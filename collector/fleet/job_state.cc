// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/job_state.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/model/rank_set.h"

namespace ddpdoctor::fleet {
namespace {

// Factor by which the interval grows for a job that makes no progress.
constexpr double kPatience = 2;
constexpr double kGrace = 1;        // seconds for a node that is known only from old messages
constexpr double kLost = 4;         // times `silence`; then the node counts as lost
constexpr double kFirstQuiet = 30;  // seconds of silence about a difference that was investigated
constexpr std::size_t kMostNodes = 8192;    // further nodes are ignored
constexpr std::size_t kMostGroups = 65536;  // above this, all groups are forgotten
// Decay of a clock difference per message, because clocks drift.
constexpr double kClockForgets = 1e-4;

std::size_t slot_of(std::uint32_t sequence, std::size_t slots) {
  constexpr std::uint32_t kGolden = 2654435769U;
  return (sequence * kGolden >> 16U) % slots;
}

}  // namespace

std::string said(const NodeState& node) {
  model::RankSet ranks;
  for (const RankMark& rank : node.marks.ranks) {
    ranks.insert(rank.rank);
  }
  const std::string host = base::printable(node.marks.host);
  return ranks.empty() ? host : fmt::format("{} ({})", host, ranks.said());
}

bool JobState::hear(NodeMarks marks, double now, std::optional<double> wall) {
  if (!nodes_.contains(marks.node) && nodes_.size() >= kMostNodes) {
    return false;
  }
  const auto [entry, added] = nodes_.try_emplace(marks.node);
  NodeState& node = entry->second;
  if (!added && marks.counter <= node.marks.counter) {
    return false;
  }
  take_over_ranks(marks, now);
  world_size_ = std::max(world_size_, marks.world_size);
  std::unordered_map<int, const RankMark*> before;
  for (const RankMark& rank : node.marks.ranks) {
    before[rank.rank] = &rank;
  }
  notice_lives(before, marks);
  for (const RankMark& rank : marks.ranks) {
    const auto known = before.find(rank.rank);
    if (known != before.end() && known->second->collectives == rank.collectives) {
      continue;
    }
    moved_ = now;
    next_look_ = limits_.hang_timeout;
    for (const GroupMark& group : rank.groups) {
      compare(rank, group, now);
    }
  }
  const bool failed = marks.ended && marks.status != 0 && !node.marks.ended;
  if (alarm_since_ == 0 && (marks.alarms > node.marks.alarms || failed)) {
    alarm_since_ = now;
    alarm_ = fmt::format(
        "{} {}", base::printable(marks.host),
        failed ? fmt::format("ended with status {}", marks.status) : "reported a proof of its own");
  }
  // Every message is delayed: the smallest difference is nearest to the truth.
  if (wall && std::isfinite(marks.time)) {
    const double ahead = marks.time - *wall;
    node.ahead = node.clock_known ? std::max(ahead, node.ahead - kClockForgets) : ahead;
    node.clock_known = true;
  }
  node.heard = wall ? now : now - std::max(limits_.silence - kGrace, 0.0);
  node.silent = false;
  node.marks = std::move(marks);
  end_said_ = end_said_ && all_ended();
  return true;
}

/// A rank that now runs on another node: its previous node has ended or disappeared.
void JobState::take_over_ranks(const NodeMarks& marks, double now) {
  for (const RankMark& rank : marks.ranks) {
    std::string& owner = owners_[rank.rank];
    if (owner != marks.node) {
      const auto former = nodes_.find(owner);
      if (former != nodes_.end() &&
          (former->second.marks.ended || is_silent(former->second, now))) {
        nodes_.erase(former);
      }
      owner = marks.node;
    }
  }
}

/// The rank is a new process, which counts its calls from the start: the calls of the previous
/// process must not be compared with them.
void JobState::notice_lives(const std::unordered_map<int, const RankMark*>& before,
                            const NodeMarks& now) {
  for (const RankMark& rank : now.ranks) {
    const auto known = before.find(rank.rank);
    if (known != before.end() &&
        (known->second->pid != rank.pid || known->second->start_ticks != rank.start_ticks)) {
      groups_.clear();
      return;
    }
  }
}

void JobState::compare(const RankMark& rank, const GroupMark& mark, double now) {
  if (groups_.size() >= kMostGroups) {
    groups_.clear();
  }
  Group& group = groups_[mark.group];
  const Hashes& hashes = mark.hashes;
  for (std::uint32_t i = 0; i < hashes.newest.size() && i < hashes.sequence; ++i) {
    compare_at(group, rank, mark, hashes.sequence - i, hashes.newest[i], now);
  }
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    const std::uint32_t sequence = hashes.sequence - hashes.sequence % kSteps[i];
    if (sequence > 0 && hashes.sequence - sequence >= hashes.newest.size()) {
      compare_at(group, rank, mark, sequence, hashes.at_step[i], now);
    }
  }
}

void JobState::compare_at(Group& group, const RankMark& rank, const GroupMark& mark,
                          std::uint32_t sequence, std::uint32_t hash, double now) {
  Group::Told& told = group.told[slot_of(sequence, Group::kTold)];
  if (hash == 0) {
    return;
  }
  if (told.sequence != sequence) {
    told = {.sequence = sequence, .hash = hash, .rank = rank.rank};
  } else if (told.hash != hash && group.differ_since == 0 && now >= group.quiet_until) {
    group.differ_since = now;
    group.text = fmt::format("the calls of ranks {} and {} differ at #{} of group {} or before it",
                             told.rank, rank.rank, sequence, base::printable(mark.group));
  }
}

void JobState::was_deaf(double now) {
  for (auto& [name, node] : nodes_) {
    node.heard = std::max(node.heard, now);
  }
  moved_ = std::max(moved_, now);
}

std::optional<Suspicion> JobState::suspicion(double now) {
  for (const auto look : {&JobState::provable, &JobState::mismatch, &JobState::silence,
                          &JobState::stillness, &JobState::end}) {
    if (auto found = (this->*look)(now)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<Suspicion> JobState::provable(double now) {
  if (alarm_since_ == 0 || now - alarm_since_ < limits_.settle || all_ended()) {
    return std::nullopt;
  }
  alarm_since_ = 0;
  return Suspicion{.reason = Reason::kProvable, .text = alarm_};
}

std::optional<Suspicion> JobState::mismatch(double now) {
  for (auto& [name, group] : groups_) {
    if (group.differ_since > 0 && now - group.differ_since >= limits_.settle) {
      group.differ_since = 0;
      group.patience = group.patience == 0 ? kFirstQuiet : group.patience * kPatience;
      group.quiet_until = now + group.patience;
      return Suspicion{.reason = Reason::kMismatch, .text = group.text};
    }
  }
  return std::nullopt;
}

std::optional<Suspicion> JobState::silence(double now) {
  std::vector<std::string> news;
  bool anybody = false;
  for (auto& [name, node] : nodes_) {
    const bool silent = is_silent(node, now);
    anybody = anybody || (!silent && !node.marks.ended);
    if (silent && !node.silent) {
      news.push_back(said(node));
    }
  }
  if (news.empty() || !anybody) {
    return std::nullopt;  // No node answers: the connection from here is the more likely cause.
  }
  for (auto& [name, node] : nodes_) {
    node.silent = is_silent(node, now);
  }
  return Suspicion{.reason = Reason::kSilent,
                   .text = fmt::format("no word from {} for {}", fmt::join(news, ", "),
                                       base::duration(limits_.silence))};
}

std::optional<Suspicion> JobState::stillness(double now) {
  const bool moves = std::any_of(nodes_.begin(), nodes_.end(), [this, now](const auto& node) {
    return !node.second.marks.ended && !is_silent(node.second, now);
  });
  next_look_ = std::max(next_look_, limits_.hang_timeout);
  if (!moves || moved_ == 0 || still_for(now) < next_look_) {
    return std::nullopt;
  }
  next_look_ *= kPatience;
  return Suspicion{
      .reason = Reason::kStill,
      .text = fmt::format("no rank began a collective for {}", base::duration(still_for(now)))};
}

/// Nodes that are silent for too long do not delay the end of the others' job.
std::optional<Suspicion> JobState::end(double now) {
  const bool over = std::all_of(nodes_.begin(), nodes_.end(), [this, now](const auto& node) {
    return node.second.marks.ended || now - node.second.heard > kLost * limits_.silence;
  });
  const bool ended = std::any_of(nodes_.begin(), nodes_.end(),
                                 [](const auto& node) { return node.second.marks.ended; });
  if (end_said_ || !over || !ended) {
    return std::nullopt;
  }
  end_said_ = true;
  return Suspicion{.reason = Reason::kEnded, .text = "the job has ended"};
}

bool JobState::all_ended() const {
  return !nodes_.empty() && std::all_of(nodes_.begin(), nodes_.end(),
                                        [](const auto& node) { return node.second.marks.ended; });
}

std::uint64_t JobState::calls() const {
  std::uint64_t sum = 0;
  for (const auto& [name, node] : nodes_) {
    for (const RankMark& rank : node.marks.ranks) {
      sum += rank.collectives;
    }
  }
  return sum;
}

std::vector<int> JobState::unheard_ranks() const {
  std::vector<int> out;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (!owners_.contains(rank)) {
      out.push_back(rank);
    }
  }
  return out;
}

std::string JobState::other_job() const {
  std::map<std::string, std::vector<std::string>> places;
  for (const auto& [name, node] : nodes_) {
    if (!node.marks.place.empty() && !node.marks.ended) {
      places[node.marks.place].push_back(node.marks.host);
    }
  }
  if (places.size() < 2) {
    return {};
  }
  std::vector<std::string> list;
  for (const auto& [place, hosts] : places) {
    list.push_back(fmt::format("{} on {}", place, fmt::join(hosts, ", ")));
  }
  return base::printable(fmt::format("{}", fmt::join(list, "; ")));
}

}  // namespace ddpdoctor::fleet
