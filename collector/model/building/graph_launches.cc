// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/graph_launches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "collector/model/gpu_queue.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

constexpr std::string_view kOperation = "cudaGraphLaunch";

struct Launches {
  std::int64_t count = 0;
  CallSite place;  // of the graph that was launched first
};

std::map<Rank, Launches> counted(const JobModel& job) {
  std::map<Rank, Launches> out;
  for (const Fact* fact : facts(job, "graph-launch")) {
    const double launches = fact->number("launches").value_or(0);
    if (!fact->rank || !(launches > 0) || launches > 1e15) {
      continue;
    }
    Launches& of_rank = out[*fact->rank];
    of_rank.count += static_cast<std::int64_t>(launches);
    if (!of_rank.place.known()) {
      of_rank.place = {.file = fact->text("file").value_or(""),
                       .line = static_cast<int>(fact->number("line").value_or(0)),
                       .function = fact->text("function").value_or("")};
    }
  }
  return out;
}

/// The ranks that are in every communicator of this rank: whichever of them a graph uses, all these
/// ranks launch it.
RankSet always_with(const JobModel& job, Rank rank) {
  std::optional<RankSet> out;
  for (const ProcessGroup& group : job.groups) {
    const RankSet members(group.ranks);
    if (is_of_nccl(group) && members.size() > 1 && members.contains(rank)) {
      out = out ? out->common(members) : members;
    }
  }
  return out.value_or(RankSet{});
}

double newest_time(const JobModel& job, Rank rank) {
  double newest = 0;
  for (const CollectiveCall& call : job.collectives) {
    newest = call.rank == rank ? std::max(newest, call.time.value_or(0)) : newest;
  }
  return newest;
}

bool differ(const RankSet& ranks, const std::map<Rank, Launches>& launches) {
  return std::any_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    return launches.at(rank).count != launches.at(ranks.front()).count;
  });
}

void add_lane(JobModel& job, const RankSet& ranks, const std::map<Rank, Launches>& launches) {
  const std::string id = fmt::format("cuda-graphs:{}", ranks.front());
  job.groups.push_back(
      {.id = id, .name = "the CUDA graphs", .backend = "nccl", .ranks = ranks.values()});
  std::int64_t most = 0;
  for (const Rank rank : ranks) {
    most = std::max(most, launches.at(rank).count);
  }
  for (const Rank rank : ranks) {
    const Launches& own = launches.at(rank);
    CollectiveCall call;
    call.rank = rank;
    call.group = id;
    call.sequence = own.count;
    call.operation = kOperation;
    call.state = own.count == most ? CallState::kEnqueued : CallState::kCompleted;
    call.time = newest_time(job, rank);
    call.call_site = own.place;
    job.collectives.push_back(std::move(call));
  }
}

}  // namespace

void add_graph_launches(JobModel& job) {
  if (std::string said = graph_launches(job); !said.empty()) {
    job.coverage.observed.push_back(std::move(said));
  }
  const std::map<Rank, Launches> launches = counted(job);
  std::set<Rank> told;
  for (const auto& [rank, own] : launches) {
    const RankSet ranks = told.contains(rank) ? RankSet{} : always_with(job, rank);
    const bool all_known =
        ranks.size() > 1 &&
        std::all_of(ranks.begin(), ranks.end(), [&](Rank one) { return launches.contains(one); });
    told.insert(ranks.begin(), ranks.end());
    if (all_known && differ(ranks, launches)) {
      add_lane(job, ranks, launches);
    }
  }
}

}  // namespace ddpdoctor::model
