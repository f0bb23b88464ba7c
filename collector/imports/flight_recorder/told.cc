// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/flight_recorder/told.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace ddpdoctor::imports {
namespace {

using model::CollectiveCall;
using model::JobModel;
using model::ProcessGroup;
using model::Rank;
using std::string_view;

constexpr string_view kUndescribed = "undefined";

/// Backends known to torchfrtrace; calls of other backends are written as gloo's.
constexpr std::array<string_view, 8> kBackends = {"nccl", "ncclx", "xccl", "gloo",
                                                  "rccl", "rcclx", "mccl", "hccl"};

/// PyTorch's name → the recorder's name, for every operation known to torchfrtrace.
constexpr std::array<std::pair<string_view, string_view>, 18> kNames = {{
    {"all_gather", "all_gather"},
    {"all_gather_coalesced", "ALLGATHER_coalesced"},
    {"all_gather_into_tensor", "_all_gather_base"},
    {"all_gather_into_tensor_coalesced", "all_gather_into_tensor_coalesced"},
    {"all_reduce", "all_reduce"},
    {"all_reduce_coalesced", "allreduce_coalesced"},
    {"all_to_all", "all_to_all"},
    {"all_to_all_single", "all_to_all"},
    {"barrier", "barrier"},
    {"broadcast", "broadcast"},
    {"gather", "gather"},
    {"monitored_barrier", "barrier"},
    {"reduce", "reduce"},
    {"reduce_scatter", "reduce_scatter"},
    {"reduce_scatter_tensor", "_reduce_scatter_base"},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced"},
    {"scatter", "scatter"},
    {"split", "split"},
}};

string_view name_of(string_view operation) {
  const auto* const found = std::find_if(
      kNames.begin(), kNames.end(), [operation](const auto& n) { return n.first == operation; });
  return found == kNames.end() ? string_view() : found->second;
}

void add_callers(const Told& told, KnownGroups& out) {
  std::map<string_view, std::set<Rank>> callers;
  for (const auto& [rank, calls] : told.calls()) {
    for (const ToldCall& call : calls) {
      callers[call.group].insert(rank);
    }
  }
  for (const auto& [id, ranks] : callers) {
    KnownGroup& group = out.try_emplace(id, KnownGroup{.description = std::string(kUndescribed),
                                                       .backend = "gloo",
                                                       .ranks = {},
                                                       .index = out.size()})
                            .first->second;
    if (group.ranks.empty()) {  // unknown: at least the ranks that make calls in it
      group.ranks.assign(ranks.begin(), ranks.end());
    }
  }
}

}  // namespace

Told::Told(const JobModel& job) : messages_(pair_messages(job)) {
  for (const CollectiveCall& call : job.collectives) {
    add(call);
  }
  if (!job.history_complete) {
    begin_alike();
  }
  for (const PairedMessage& message : messages_.messages) {
    calls_[message.call->rank].push_back({.call = message.call,
                                          .group = message.pair->id,
                                          .sequence = message.number,
                                          .name = name_of_message(message)});
  }
  for (auto& [rank, calls] : calls_) {
    std::stable_sort(calls.begin(), calls.end(), [](const ToldCall& a, const ToldCall& b) {
      return a.call->time.value_or(0) < b.call->time.value_or(0);
    });
  }
}

std::vector<std::string> Told::left_out() const {
  std::vector<std::string> out;
  if (messages_.nameless > 0) {
    out.push_back(
        fmt::format("{} sends and receives are left out: their receiver takes from any rank",
                    messages_.nameless));
  }
  if (messages_.forgotten > 0) {
    out.push_back(
        fmt::format("{} sends and receives that are over are left out: not all before them were "
                    "recorded",
                    messages_.forgotten));
  }
  for (const auto& [operation, count] : nameless_) {
    out.push_back(fmt::format("{} calls of {} are left out: torch's recorder has no name for it",
                              count, operation));
  }
  return out;
}

void Told::add(const CollectiveCall& call) {
  if (call.point_to_point && (call.operation == "send" || call.operation == "recv")) {
    return;
  }
  const string_view name = name_of(call.operation);
  if (name.empty() || call.point_to_point) {
    ++nameless_[call.operation];
  } else {
    calls_[call.rank].push_back(
        {.call = &call, .group = call.group, .sequence = call.sequence, .name = std::string(name)});
  }
}

/// Calls that one rank's recorder has dropped must not be written for others: that rank would seem
/// never to have made them.
void Told::begin_alike() {
  std::map<std::pair<string_view, Rank>, std::int64_t> oldest;
  for (const auto& [rank, calls] : calls_) {
    for (const ToldCall& told : calls) {
      auto [known, added] = oldest.try_emplace({told.group, rank}, told.sequence);
      known->second = std::min(known->second, told.sequence);
    }
  }
  std::map<string_view, std::int64_t> first;
  for (const auto& [member, sequence] : oldest) {
    auto [known, added] = first.try_emplace(member.first, sequence);
    known->second = std::max(known->second, sequence);
  }
  for (auto& [rank, calls] : calls_) {
    std::erase_if(calls,
                  [&](const ToldCall& told) { return told.sequence < first.at(told.group); });
  }
}

KnownGroups groups_of(const JobModel& job, const Told& told) {
  KnownGroups out;
  for (const ProcessGroup& group : job.groups) {
    const bool invented = group.name.empty() || group.name == "group " + group.id;
    const bool known =
        std::find(kBackends.begin(), kBackends.end(), group.backend) != kBackends.end();
    out.try_emplace(group.id,
                    KnownGroup{.description = invented ? std::string(kUndescribed) : group.name,
                               .backend = known ? group.backend : "gloo",
                               .ranks = group.ranks,
                               .index = out.size()});
  }
  for (const MessagePair& pair : told.pairs()) {
    const auto group = out.find(pair.of);
    out.try_emplace(pair.id,
                    KnownGroup{.description = fmt::format("messages of {}", pair.of),
                               .backend = group == out.end() ? "gloo" : group->second.backend,
                               .ranks = pair.ranks,
                               .index = out.size(),
                               .pair_of = std::string(pair.of)});
  }
  add_callers(told, out);
  for (auto& [id, group] : out) {
    group.listed = fmt::format("[{}]", fmt::join(group.ranks, ", "));
    group.members = group.ranks;
    std::sort(group.members.begin(), group.members.end());
  }
  return out;
}

}  // namespace ddpdoctor::imports
