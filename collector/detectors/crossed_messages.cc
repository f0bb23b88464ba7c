// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks are matched in the order of the calls (NCCL has no tags): one side
// sends them in another order, or with other sizes, than the other side receives them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::crossed_messages {
namespace {

constexpr std::string_view kKind = "crossed-messages";
constexpr std::size_t kMostShown = 4;  // messages of a side shown in a sentence

using Messages = std::vector<const model::CollectiveCall*>;

bool is_send(const model::CollectiveCall& call) {
  return call.operation == "send" || call.operation == "isend";
}

bool is_receive(const model::CollectiveCall& call) {
  return call.operation == "recv" || call.operation == "irecv";
}

/// Messages that are matched with each other by order alone.
struct Lane {
  model::Rank from = 0;
  model::Rank to = 0;
  std::string group;
  std::optional<int> tag;  // absent: the backend ignores tags
  auto operator<=>(const Lane&) const = default;
};

struct Sides {
  Messages sent;
  Messages received;
};

bool ignores_tags(const model::JobModel& job, const std::string& group) {
  const model::ProcessGroup* const known = model::group(job, group);
  return known != nullptr && model::is_of_nccl(*known);
}

/// All messages of the job, or only open ones if older messages may be lost.
std::map<Lane, Sides> lanes_of(const graph::Examination& examination, bool complete) {
  std::map<Lane, Sides> lanes;
  std::set<std::pair<model::Rank, std::string>> from_anybody;
  for (const graph::Standing& standing : examination.standings) {
    for (const model::CollectiveCall* call : examination.history.point_to_point(standing.rank)) {
      const bool sends = is_send(*call);
      if (!call->peer && is_receive(*call)) {
        from_anybody.emplace(standing.rank, call->group);
      }
      if (!call->peer || (!sends && !is_receive(*call)) ||
          (!complete && model::is_over(call->state))) {
        continue;
      }
      Lane lane{.from = sends ? standing.rank : *call->peer,
                .to = sends ? *call->peer : standing.rank,
                .group = call->group,
                .tag = std::nullopt};
      if (!ignores_tags(examination.job, call->group)) {
        lane.tag = call->tag.value_or(0);
      }
      (sends ? lanes[lane].sent : lanes[lane].received).push_back(call);
    }
  }
  // A rank that receives from any sender may have received any of them.
  std::erase_if(lanes, [&](const auto& one) {
    return from_anybody.contains({one.first.to, one.first.group});
  });
  return lanes;
}

std::size_t bytes_of(std::string_view dtype) {
  static constexpr std::pair<std::string_view, std::size_t> kSizes[] = {
      {"float64", 8}, {"int64", 8}, {"float32", 4}, {"int32", 4}, {"float16", 2}, {"bfloat16", 2},
      {"int16", 2},   {"uint8", 1}, {"int8", 1},    {"bool", 1},  {"float8", 1}};
  for (const auto& [name, size] : kSizes) {
    if (dtype == name || (name == "float8" && dtype.starts_with(name))) {
      return size;
    }
  }
  return 0;
}

/// Nothing if one of the sizes is unknown.
std::optional<bool> same_size(const model::CollectiveCall& a, const model::CollectiveCall& b) {
  if (!a.count || !b.count) {
    return std::nullopt;
  }
  const std::size_t of_a = bytes_of(a.dtype);
  const std::size_t of_b = bytes_of(b.dtype);
  if (of_a != 0 && of_b != 0) {
    return *a.count * static_cast<std::int64_t>(of_a) == *b.count * static_cast<std::int64_t>(of_b);
  }
  return a.dtype == b.dtype ? std::optional(*a.count == *b.count) : std::nullopt;
}

bool belong_together(const model::CollectiveCall& sent, const model::CollectiveCall& received) {
  const bool tags = sent.tag && received.tag && *sent.tag != *received.tag;
  return !tags && same_size(sent, received).value_or(false);
}

bool differ(const model::CollectiveCall& sent, const model::CollectiveCall& received) {
  const bool tags = sent.tag && received.tag && *sent.tag != *received.tag;
  return tags || !same_size(sent, received).value_or(true);
}

/// The first matched messages that were not meant for each other.
struct Crossing {
  Lane lane;
  Sides sides;
  std::size_t at = 0;
  bool permuted = false;  // the right partner of each comes at another position

  [[nodiscard]] const model::CollectiveCall& sent() const {
    return *sides.sent[at];
  }
  [[nodiscard]] const model::CollectiveCall& received() const {
    return *sides.received[at];
  }
};

std::optional<Crossing> crossing_in(const Lane& lane, const Sides& sides) {
  const std::size_t pairs = std::min(sides.sent.size(), sides.received.size());
  for (std::size_t i = 0; i < pairs; ++i) {
    if (!differ(*sides.sent[i], *sides.received[i])) {
      continue;
    }
    Crossing out{.lane = lane, .sides = sides, .at = i};
    const bool sent_is_wanted = std::any_of(
        sides.received.begin() + static_cast<std::ptrdiff_t>(i) + 1, sides.received.end(),
        [&](const model::CollectiveCall* one) { return belong_together(*sides.sent[i], *one); });
    const bool received_comes =
        std::any_of(sides.sent.begin() + static_cast<std::ptrdiff_t>(i) + 1, sides.sent.end(),
                    [&](const model::CollectiveCall* one) {
                      return belong_together(*one, *sides.received[i]);
                    });
    out.permuted = sent_is_wanted && received_comes;
    return out;
  }
  return std::nullopt;
}

/// The crossing blocks one of the two: its call is open, or it was ended in it.
bool is_stuck(const graph::Examination& examination, const Crossing& crossing) {
  const auto open = [&](const Messages& messages) {
    return std::any_of(
        messages.begin() + static_cast<std::ptrdiff_t>(crossing.at), messages.end(),
        [](const auto* call) { return call->state != model::CallState::kCompleted; });
  };
  return examination.job.ended || open(crossing.sides.sent) || open(crossing.sides.received);
}

std::string message_text(const model::CollectiveCall& call) {
  std::string out = call.count ? fmt::format("{}", *call.count) : std::string("?");
  out += call.dtype.empty() ? "" : " " + call.dtype;
  return out + (call.tag && *call.tag != 0 ? fmt::format(" (tag {})", *call.tag) : "");
}

/// "4 float32, 8 float32" from the crossing onwards.
std::string listed(const Messages& messages, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < messages.size() && i < from + kMostShown; ++i) {
    out += (out.empty() ? "" : ", ") + message_text(*messages[i]);
  }
  return out + (messages.size() > from + kMostShown ? ", …" : "");
}

std::string fix_for(const model::JobModel& job, const Crossing& crossing) {
  const std::string where = crossing.received().call_site.known()
                                ? " (" + place(crossing.received().call_site) + ")"
                                : std::string();
  if (!crossing.permuted) {
    return fmt::format(
        "Use the same size and order on both sides of the message{}: send the shape first, or pad "
        "it.",
        where);
  }
  return fmt::format(
      "Receive on rank {} in the order in which rank {} sends{}; or use {} for each kind of "
      "message.",
      crossing.lane.to, crossing.lane.from, where,
      ignores_tags(job, crossing.lane.group) ? "a separate group (NCCL ignores tags)"
                                             : "a separate tag");
}

Finding finding_of(const graph::Examination& examination, const Crossing& crossing, bool complete) {
  Finding finding;
  finding.kind = kKind;
  finding.culprits = {crossing.lane.from, crossing.lane.to};
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  const bool sure = complete && crossing.permuted && (examination.still() || examination.job.ended);
  finding.confidence = sure ? Confidence::kCertain : Confidence::kLikely;
  if (!complete && !crossing.permuted) {
    // The remaining messages after a loss may not match.
    finding.confidence = Confidence::kPossible;
  }
  finding.summary = fmt::format(
      "rank {} sends {} to rank {}, but rank {} is receiving {}; messages pair in the order of the "
      "calls",
      crossing.lane.from, message_text(crossing.sent()), crossing.lane.to, crossing.lane.to,
      message_text(crossing.received()));
  finding.fix = fix_for(examination.job, crossing);
  const auto add = [&](const model::CollectiveCall& call, std::string_view what) {
    if (call.call_site.known()) {
      finding.locations.push_back(
          location(call.call_site, {call.rank},
                   fmt::format("rank {} {} {} here", call.rank, what, message_text(call))));
    }
  };
  add(crossing.received(), "receives");
  add(crossing.sent(), "sends");
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("messages from number {} on: rank {} sends {}; rank {} receives {}",
                           crossing.at + 1, crossing.lane.from,
                           listed(crossing.sides.sent, crossing.at), crossing.lane.to,
                           listed(crossing.sides.received, crossing.at))});
  return finding;
}

/// In a send or a receive with this rank, or with an unknown one while there is only one other.
bool may_wait_with(const graph::Standing& standing, std::string_view operation, model::Rank peer,
                   bool only_two) {
  return standing.activity == graph::Activity::kPointToPoint && standing.call &&
         standing.call->operation == operation &&
         (standing.call->peer ? *standing.call->peer == peer : only_two);
}

/// Stacks alone: one rank waits in a send to another one that waits in a receive from it. If these
/// were one message, neither would wait.
std::optional<Finding> unmatched_pair(const graph::Examination& examination) {
  const auto& all = examination.standings;
  const bool only_two = all.size() == 2 && examination.job.world_size.value_or(2) == 2;
  for (const graph::Standing& sender : all) {
    for (const graph::Standing& receiver : all) {
      if (!may_wait_with(sender, "send", receiver.rank, only_two) ||
          !may_wait_with(receiver, "recv", sender.rank, only_two) || sender.moved ||
          receiver.moved) {
        continue;
      }
      Finding finding;
      finding.kind = kKind;
      finding.confidence = Confidence::kPossible;
      finding.culprits = {sender.rank, receiver.rank};
      finding.waiting = waiting_ranks(examination).minus(finding.culprits);
      finding.summary = fmt::format(
          "rank {} is waiting in send to rank {}, and rank {} in recv from rank {}: they wait for "
          "different messages",
          sender.rank, receiver.rank, receiver.rank, sender.rank);
      finding.fix = fmt::format(
          "Receive on rank {} in the order in which rank {} sends, with the same group and tag. "
          "`ddpdoctor run -- …` records the messages of both.",
          receiver.rank, sender.rank);
      for (const graph::Standing* one : {&sender, &receiver}) {
        if (one->user.known()) {
          finding.locations.push_back(location(
              *one, fmt::format("rank {} is waiting in {} here", one->rank, one->call->operation)));
        }
      }
      return finding;
    }
  }
  return std::nullopt;
}

Findings detect(const graph::Examination& examination) {
  if (!may_hang(examination)) {
    return {};
  }
  if (auto pair = examination.history.empty() ? unmatched_pair(examination) : std::nullopt) {
    return {std::move(*pair)};
  }
  const bool complete =
      examination.job.history_complete && examination.job.coverage.events_lost == 0;
  for (const auto& [lane, sides] : lanes_of(examination, complete)) {
    const auto crossing = crossing_in(lane, sides);
    // gloo accepts a message that is shorter than the receiver's buffer.
    if (crossing && !crossing->permuted && !ignores_tags(examination.job, lane.group)) {
      continue;
    }
    if (crossing && is_stuck(examination, *crossing)) {
      return {finding_of(examination, *crossing, complete)};
    }
  }
  return {};
}

constexpr std::string_view kExplanation =
    R"(What you see: two neighbouring stages of a pipeline wait in send and recv, or one of them receives the tensor of a different
layer. With gloo the receiver aborts; with NCCL both wait, or the numbers are wrong.

Why: between two ranks of a group, the n-th send is received by the n-th recv. NCCL ignores tags altogether. If a rank receives the
gradient first but its neighbour sends the activation first, the rank gets the activation in place of the gradient.

How ddpdoctor knows: it compares the recorded messages between two ranks in the order of the calls. The send and the recv of one pair
differ in size or tag, and the matching partner is at a different position. If the recording does not cover the job from its start,
ddpdoctor compares the messages that are still open. Without a recording, from stacks: one rank waits in send to another that waits
in recv from it, and a message that both meant would have been passed (possible).

Fix: use the same order on both ranks.

    -    dist.recv(gradient, src=nxt); dist.recv(activation, src=nxt)
    +    dist.recv(activation, src=nxt); dist.recv(gradient, src=nxt)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = kKind,
                           .title = "Messages pair in a different order than intended",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kMechanism};

}  // namespace ddpdoctor::detectors::crossed_messages
