// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/arguments_of_nccl.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/model/gpu_calls.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

/// The collectives of one rank in one group, in their order.
template <typename Call>
using Lanes = std::map<std::pair<Rank, std::string>, std::vector<Call*>>;

/// NCCL's communicators count their own initialization as a call, torch's groups do not.
bool is_setup(const CollectiveCall& call) {
  return kind_of(call.operation).makes_communicator;
}

template <typename Calls>
auto lanes_of(Calls& calls) {
  using Call = std::remove_reference_t<decltype(calls.front())>;
  Lanes<Call> lanes;
  for (Call& call : calls) {
    if (!call.point_to_point && !is_setup(call)) {
      lanes[{call.rank, call.group}].push_back(&call);
    }
  }
  for (auto& [lane, made] : lanes) {
    std::ranges::stable_sort(made, {}, &CollectiveCall::sequence);
  }
  return lanes;
}

/// The only group of torch with the members of a communicator.
std::optional<std::string> group_above(const JobModel& job, const std::string& communicator) {
  const ProcessGroup* const below = group(job, communicator);
  std::optional<std::string> found;
  for (const ProcessGroup& one : job.groups) {
    if (below == nullptr || below->ranks.empty() || one.id == communicator ||
        one.backend.find("nccl") == std::string::npos || one.id.starts_with("nccl:") ||
        RankSet(one.ranks) != RankSet(below->ranks)) {
      continue;
    }
    if (found) {
      return std::nullopt;
    }
    found = one.id;
  }
  return found;
}

/// Its size means the same to torch and to NCCL.
bool is_of_one_size(const std::string& operation) {
  return kind_of(operation).keeps_size;
}

bool may_be(const CollectiveCall& above, const CollectiveCall& below) {
  if (above.operation == "barrier") {  // an all_reduce of one number
    return below.operation == "all_reduce";
  }
  if (!is_of_one_size(above.operation)) {
    return true;
  }
  return above.operation == below.operation &&
         (!above.count || !below.count || *above.count == *below.count);
}

/// The pairs of calls, from the newest back; empty if they are not the same calls. Each record may
/// have lost its oldest ones.
std::vector<std::pair<CollectiveCall*, const CollectiveCall*>> pairs_of(
    const std::vector<CollectiveCall*>& above, const std::vector<const CollectiveCall*>& below) {
  const bool lost = above.front()->sequence > 1 || below.front()->sequence > 2;
  std::vector<std::pair<CollectiveCall*, const CollectiveCall*>> pairs;
  if (above.size() != below.size() && !lost) {
    return pairs;
  }
  for (std::size_t i = 1; i <= std::min(above.size(), below.size()); ++i) {
    pairs.emplace_back(above[above.size() - i], below[below.size() - i]);
    if (!may_be(*pairs.back().first, *pairs.back().second)) {
      return {};
    }
  }
  return pairs;
}

/// The sizes of the messages that a rank exchanged with each other one, in their order.
using Sizes = std::map<Rank, std::vector<std::int64_t>>;
struct Messages {
  Sizes sent;
  Sizes received;
};

std::map<std::pair<Rank, std::string>, Messages> messages_of(
    const std::vector<CollectiveCall>& below) {
  std::map<std::pair<Rank, std::string>, Messages> found;
  for (const CollectiveCall& call : below) {
    if (call.point_to_point && call.peer && call.count) {
      Messages& messages = found[{call.rank, call.group}];
      (call.operation == "send" ? messages.sent : messages.received)[*call.peer].push_back(
          *call.count);
    }
  }
  return found;
}

/// The k-th size of each rank of the group; nothing unless each had one message in each of `calls`
/// calls, or none in all of them.
std::optional<std::vector<std::int64_t>> nth_of_each(const std::vector<Rank>& ranks,
                                                     const Sizes& sizes, std::size_t k,
                                                     std::size_t calls) {
  std::vector<std::int64_t> out;
  for (const Rank rank : ranks) {
    const auto known = sizes.find(rank);
    if (known != sizes.end() && known->second.size() != calls) {
      return std::nullopt;
    }
    out.push_back(known == sizes.end() ? 0 : known->second[k]);
  }
  return out;
}

/// NCCL makes an all_to_all of messages: their sizes are its splits, as far as the communicator has
/// no other messages.
void add_splits(const JobModel& job, const std::string& group_above, const Messages& messages,
                const std::vector<CollectiveCall*>& above) {
  std::vector<CollectiveCall*> calls;
  std::ranges::copy_if(above, std::back_inserter(calls), [](const CollectiveCall* call) {
    return kind_of(call->operation).exchanges;
  });
  const std::vector<Rank>& ranks = group(job, group_above)->ranks;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    auto sent = nth_of_each(ranks, messages.sent, k, calls.size());
    auto expected = nth_of_each(ranks, messages.received, k, calls.size());
    if (!calls[k]->splits && sent && expected) {
      calls[k]->splits = std::move(sent);
      calls[k]->output_splits = std::move(expected);
    }
  }
}

}  // namespace

void add_arguments_of_nccl(JobModel& job, const std::vector<CollectiveCall>& below) {
  auto above = lanes_of(job.collectives);
  for (const auto& [lane, messages] : messages_of(below)) {
    const auto group = group_above(job, lane.second);
    const auto there = group ? above.find({lane.first, *group}) : above.end();
    if (there != above.end()) {
      add_splits(job, *group, messages, there->second);
    }
  }
  for (const auto& [lane, calls] : lanes_of(below)) {
    const auto group = group_above(job, lane.second);
    const auto there = group ? above.find({lane.first, *group}) : above.end();
    if (there == above.end()) {
      continue;
    }
    for (const auto& [call, same] : pairs_of(there->second, calls)) {
      call->begun = same->begun;
      if (is_of_one_size(call->operation)) {
        call->root = call->root ? call->root : same->root;
        call->reduce_op = call->reduce_op.empty() ? same->reduce_op : call->reduce_op;
      }
    }
  }
}

}  // namespace ddpdoctor::model
