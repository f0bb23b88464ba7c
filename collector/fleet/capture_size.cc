// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/capture_size.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ddpdoctor::fleet {
namespace {

// A rank of another node can be further behind than this only while it computes; the divergence is
// where the slowest rank stopped.
constexpr std::int64_t kKept = 512;                 // calls of one rank on one group
constexpr std::size_t kSmall = std::size_t{20000};  // calls of a whole node

}  // namespace

model::JobModel without_old_calls(const model::JobModel& job) {
  model::JobModel out = job;
  if (job.collectives.size() <= kSmall) {
    return out;
  }
  using Key = std::tuple<model::Rank, std::string, bool>;
  std::map<Key, std::int64_t> newest;
  const auto key = [](const model::CollectiveCall& call) {
    return Key(call.rank, call.group, call.point_to_point);
  };
  for (const model::CollectiveCall& call : job.collectives) {
    std::int64_t& last = newest[key(call)];
    last = std::max(last, call.sequence);
  }
  std::erase_if(out.collectives, [&](const model::CollectiveCall& call) {
    return model::is_over(call.state) && call.sequence + kKept < newest[key(call)];
  });
  out.history_complete = out.history_complete && out.collectives.size() == job.collectives.size();
  return out;
}

}  // namespace ddpdoctor::fleet
