// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/flight_recorder/messages.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace ddpdoctor::imports {
namespace {

using model::CollectiveCall;
using model::Rank;
using std::string_view;

bool is_message(const CollectiveCall& call) {
  return call.point_to_point && (call.operation == "send" || call.operation == "recv");
}

bool sends(const CollectiveCall& call) {
  return call.operation == "send";
}

bool has_peer(const CollectiveCall& call) {
  return call.peer && *call.peer >= 0 && *call.peer < model::kMaxWorldSize;
}

/// A receiving rank and its group, for receives whose sender may be unknown.
using Receiver = std::pair<string_view, Rank>;

Receiver receiver_of(const CollectiveCall& call) {
  return {call.group, sends(call) ? *call.peer : call.rank};
}

/// The position of a message in its pair: the nth (from 1) in one direction with one tag.
struct Place {
  std::int64_t count = 0;
  bool upwards = false;  // from the lower rank to the higher
  int tag = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Side {
  const CollectiveCall* call = nullptr;
  const MessagePair* pair = nullptr;
  Place place;
};

/// Assigns the same number to both sides of each message.
class Pairing {
 public:
  explicit Pairing(PairedMessages& out) : out_(out) {}

  void add(const CollectiveCall& call) {
    const Rank low = std::min(call.rank, *call.peer);
    const Rank high = std::max(call.rank, *call.peer);
    const auto [known, added] = pairs_.try_emplace({call.group, low, high}, nullptr);
    if (added) {
      out_.pairs.push_back(
          {.id = fmt::format("{}/{}:{}", call.group, low, high),
           .of = call.group,
           .ranks = low == high ? std::vector<Rank>{low} : std::vector<Rank>{low, high}});
      known->second = &out_.pairs.back();
    }
    Place place{.upwards = sends(call) == (call.rank == low), .tag = call.tag.value_or(0)};
    std::int64_t& count = counts_[{known->second, call.rank, sends(call), place.tag}];
    place.count = ++count;
    numbers_[known->second].try_emplace(place, 0);
    sides_.push_back({.call = &call, .pair = known->second, .place = place});
  }

  void finish() {
    for (auto& [pair, places] : numbers_) {
      std::int64_t next = 0;
      for (auto& [place, number] : places) {
        number = ++next;
      }
    }
    for (const Side& side : sides_) {
      out_.messages.push_back(
          {.call = side.call, .pair = side.pair, .number = numbers_.at(side.pair).at(side.place)});
    }
  }

 private:
  PairedMessages& out_;
  std::map<std::tuple<string_view, Rank, Rank>, const MessagePair*> pairs_;
  std::map<std::tuple<const MessagePair*, Rank, bool, int>, std::int64_t> counts_;
  std::map<const MessagePair*, std::map<Place, std::int64_t>> numbers_;
  std::vector<Side> sides_;
};

}  // namespace

PairedMessages pair_messages(const model::JobModel& job) {
  std::vector<const CollectiveCall*> calls;
  std::set<Receiver> from_anyone;
  PairedMessages out;
  for (const CollectiveCall& call : job.collectives) {
    if (!is_message(call)) {
      continue;
    }
    if (!has_peer(call)) {
      ++out.nameless;
      if (!sends(call)) {
        from_anyone.emplace(call.group, call.rank);
      }
      continue;
    }
    calls.push_back(&call);
  }
  std::stable_sort(calls.begin(), calls.end(), [](const auto* a, const auto* b) {
    return std::tuple(a->rank, a->time.value_or(0)) < std::tuple(b->rank, b->time.value_or(0));
  });
  Pairing pairing(out);
  for (const CollectiveCall* call : calls) {
    if (from_anyone.contains(receiver_of(*call))) {
      ++out.nameless;
    } else if (!job.history_complete && model::is_over(call->state)) {
      ++out.forgotten;
    } else {
      pairing.add(*call);
    }
  }
  pairing.finish();
  return out;
}

std::string name_of_message(const PairedMessage& message) {
  const CollectiveCall& call = *message.call;
  const std::vector<Rank>& ranks = message.pair->ranks;
  const auto place = [&](Rank rank) { return rank == ranks.front() ? 0 : 1; };
  return sends(call) ? fmt::format("send {}->{}", place(call.rank), place(*call.peer))
                     : fmt::format("recv {}<-{}", place(call.rank), place(*call.peer));
}

}  // namespace ddpdoctor::imports
