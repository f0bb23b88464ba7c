// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/history.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::graph {
namespace {

constexpr std::array<std::string_view, 8> kMessageCalls = {
    "send", "recv", "isend", "irecv", "batch_isend_irecv", "recv_any_source", "sendrecv", "probe"};

void put_in_order(Calls& calls) {
  const auto by_sequence = [](const model::CollectiveCall* a, const model::CollectiveCall* b) {
    return a->sequence < b->sequence;
  };
  if (!std::is_sorted(calls.begin(), calls.end(), by_sequence)) {
    std::stable_sort(calls.begin(), calls.end(), by_sequence);
  }
}

// A hostile or merged capture may contain one call twice: the first copy counts.
void drop_repeats(Calls& calls) {
  const auto same = [](const model::CollectiveCall* a, const model::CollectiveCall* b) {
    return a->sequence == b->sequence;
  };
  calls.erase(std::unique(calls.begin(), calls.end(), same), calls.end());
}

/// PyTorch's record of the end of a batch of calls. Only it learns what the GPU has done; the
/// records of the batch's messages stay as they were posted.
bool ends_batch(const model::CollectiveCall& call) {
  return call.operation == "coalesced";
}

/// Gives the newest messages of a rank the state of their batch; false if it ends none.
bool end_batch(const model::CollectiveCall& end, Calls& messages,
               std::deque<model::CollectiveCall>& changed) {
  bool found = false;
  for (auto one = messages.rbegin(); one != messages.rend(); ++one) {
    const model::CollectiveCall& message = **one;
    if (message.group != end.group || message.call_site != end.call_site ||
        message.sequence != messages.back()->sequence ||
        message.state != model::CallState::kEnqueued) {
      break;
    }
    changed.push_back(message);
    changed.back().state = end.state;
    *one = &changed.back();
    found = true;
  }
  return found;
}

/// Of the first call that has this sequence number or a higher one.
std::ptrdiff_t position_of(const Calls& calls, std::int64_t sequence) {
  const auto found = std::lower_bound(calls.begin(), calls.end(), sequence,
                                      [](const model::CollectiveCall* call, std::int64_t wanted) {
                                        return call->sequence < wanted;
                                      });
  return found - calls.begin();
}

}  // namespace

bool is_point_to_point(std::string_view operation) {
  return std::find(kMessageCalls.begin(), kMessageCalls.end(), operation) != kMessageCalls.end();
}

History::History(const model::JobModel& job) {
  const std::string* group = nullptr;
  std::map<model::Rank, Calls>* ranks = nullptr;
  model::Rank rank = -1;
  Calls* calls = nullptr;
  for (const model::CollectiveCall& call : job.collectives) {
    const auto messages =
        ends_batch(call) ? point_to_point_.find(call.rank) : point_to_point_.end();
    if (messages != point_to_point_.end() && end_batch(call, messages->second, placed_)) {
      continue;
    }
    if (call.point_to_point || is_point_to_point(call.operation)) {
      point_to_point_[call.rank].push_back(&call);
      continue;
    }
    if (group == nullptr || *group != call.group || calls == nullptr || rank != call.rank) {
      group = &call.group;
      rank = call.rank;
      ranks = &by_group_[call.group];
      calls = &(*ranks)[call.rank];
    }
    calls->push_back(&call);
  }
  for (auto& [id, members] : by_group_) {
    for (auto& [member, recorded] : members) {
      put_in_order(recorded);
      drop_repeats(recorded);
      lanes_[member].push_back(&recorded);
      read_.insert(member);
    }
  }
  for (auto& [member, recorded] : point_to_point_) {
    put_in_order(recorded);
    read_.insert(member);
  }
  for (const model::Fact& fact : job.facts) {
    if (fact.kind == "flight-recorder" && fact.rank && !fact.flag("cut").value_or(false)) {
      read_.insert(*fact.rank);
    }
  }
}

void History::place(const model::CollectiveCall& call, std::vector<model::CallSite> callers) {
  const auto members = by_group_.find(call.group);
  if (members == by_group_.end() || callers.empty()) {
    return;
  }
  Calls& calls = members->second[call.rank];
  const auto at = calls.begin() + position_of(calls, call.sequence);
  if (at != calls.end() && *at == &call) {
    model::CollectiveCall& placed = placed_.emplace_back(call);
    placed.call_site = callers.front();
    placed.callers = std::move(callers);
    *at = &placed;
  }
}

std::vector<std::string> History::groups() const {
  std::vector<std::string> result;
  result.reserve(by_group_.size());
  for (const auto& [id, ranks] : by_group_) {
    result.push_back(id);
  }
  return result;
}

const std::map<model::Rank, Calls>& History::ranks(std::string_view group) const {
  static const std::map<model::Rank, Calls> kNone;
  const auto found = by_group_.find(group);
  return found == by_group_.end() ? kNone : found->second;
}

const Calls& History::calls(std::string_view group, model::Rank rank) const {
  static const Calls kNone;
  const std::map<model::Rank, Calls>& members = ranks(group);
  const auto found = members.find(rank);
  return found == members.end() ? kNone : found->second;
}

const model::CollectiveCall* History::at(std::string_view group, model::Rank rank,
                                         std::int64_t sequence) const {
  const Calls& all = calls(group, rank);
  const auto found = all.begin() + position_of(all, sequence);
  return found == all.end() || (*found)->sequence != sequence ? nullptr : *found;
}

const model::CollectiveCall* History::last(std::string_view group, model::Rank rank) const {
  const Calls& all = calls(group, rank);
  return all.empty() ? nullptr : all.back();
}

const std::vector<const Calls*>& History::lanes(model::Rank rank) const {
  static const std::vector<const Calls*> kNone;
  const auto found = lanes_.find(rank);
  return found == lanes_.end() ? kNone : found->second;
}

bool History::was_read(model::Rank rank) const {
  return read_.contains(rank);
}

const Calls& History::point_to_point(model::Rank rank) const {
  static const Calls kNone;
  const auto found = point_to_point_.find(rank);
  return found == point_to_point_.end() ? kNone : found->second;
}

bool same_line(const model::CallSite& a, const model::CallSite& b) {
  return a.line == b.line && a.file == b.file;
}

std::vector<model::CallSite> callers_of(const model::CollectiveCall& call) {
  if (!call.callers.empty()) {
    return call.callers;
  }
  if (call.call_site.known()) {
    return {call.call_site};
  }
  return {};
}

std::vector<model::CallSite> callers_of(const model::CollectiveCall& call,
                                        const std::vector<model::CallSite>& host) {
  std::vector<model::CallSite> callers = callers_of(call);
  const auto around = std::find_if(host.begin(), host.end(), [&call](const model::CallSite& one) {
    return one.file == call.call_site.file && one.function == call.call_site.function;
  });
  if (callers.size() == 1 && around != host.end()) {
    callers.insert(callers.end(), around + 1, host.end());
  }
  return callers;
}

}  // namespace ddpdoctor::graph
