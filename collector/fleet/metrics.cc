// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/metrics.h"

#include <algorithm>

namespace ddpdoctor::fleet {
namespace {

/// The lowest and highest sequence number in a group.
struct Reach {
  std::uint32_t most = 0;
  std::uint32_t least = ~std::uint32_t{0};
  std::uint32_t completed = 0;
};

std::map<std::string, Reach> reaches(const JobState& state) {
  std::map<std::string, Reach> out;
  for (const auto& [name, node] : state.nodes()) {
    for (const RankMark& rank : node.marks.ranks) {
      for (const GroupMark& group : rank.groups) {
        Reach& reach = out[group.group];
        reach.most = std::max(reach.most, group.hashes.sequence);
        reach.least = std::min(reach.least, group.hashes.sequence);
        reach.completed = std::max(reach.completed, group.completed);
      }
    }
  }
  return out;
}

Labels with(const Labels& job, std::string_view key, std::string value) {
  Labels out = job;
  out.emplace_back(key, std::move(value));
  return out;
}

void add_job(const JobState& state, const Labels& job, double now, std::vector<Metric>& out) {
  out.push_back({.name = "ddpdoctor_job_seconds_without_progress",
                 .help = "Seconds since any rank began a collective.",
                 .samples = {{job, state.still_for(now)}}});
  out.push_back({.name = "ddpdoctor_job_ranks_unheard",
                 .help = "Ranks of the world that no node speaks of.",
                 .samples = {{job, static_cast<double>(state.unheard_ranks().size())}}});
  std::map<std::string, int> count{{"heard", 0}, {"silent", 0}, {"ended", 0}};
  for (const auto& [name, node] : state.nodes()) {
    ++count[node.marks.ended ? "ended" : state.is_silent(node, now) ? "silent" : "heard"];
  }
  Metric nodes{.name = "ddpdoctor_nodes", .help = "Nodes of the job by whether they are heard."};
  for (const auto& [what, number] : count) {
    nodes.samples.push_back({with(job, "state", what), static_cast<double>(number)});
  }
  out.push_back(std::move(nodes));
}

void add_groups(const std::map<std::string, Reach>& groups, const Labels& job,
                std::vector<Metric>& out) {
  const auto add = [&](Metric metric, auto value) {
    for (const auto& [name, reach] : groups) {
      metric.samples.push_back({with(job, "group", name), static_cast<double>(value(reach))});
    }
    out.push_back(std::move(metric));
  };
  add({.name = "ddpdoctor_group_collectives_total",
       .counter = true,
       .help = "Collectives that the first rank of the group has begun."},
      [](const Reach& reach) { return reach.most; });
  add({.name = "ddpdoctor_group_completed_total",
       .counter = true,
       .help = "Collectives of the group that a rank has completed."},
      [](const Reach& reach) { return reach.completed; });
  add({.name = "ddpdoctor_group_spread_collectives",
       .help = "Collectives between the first and the last rank of the group."},
      [](const Reach& reach) { return reach.most - reach.least; });
}

/// The largest distance of this rank behind the fastest rank, over all its groups.
double behind(const RankMark& rank, const std::map<std::string, Reach>& groups) {
  std::uint32_t most = 0;
  for (const GroupMark& group : rank.groups) {
    most = std::max(most, groups.at(group.group).most - group.hashes.sequence);
  }
  return most;
}

template <typename Value>
void add_ranks(const JobState& state, const Labels& job, Metric metric, Value value,
               std::vector<Metric>& out) {
  for (const auto& [name, node] : state.nodes()) {
    const Labels on_host = with(job, "host", node.marks.host);
    for (const RankMark& rank : node.marks.ranks) {
      metric.samples.push_back({with(on_host, "rank", std::to_string(rank.rank)), value(rank)});
    }
  }
  out.push_back(std::move(metric));
}

}  // namespace

std::vector<Metric> metrics(const JobState& state, const std::string& name, double now,
                            const std::map<std::string, std::uint64_t>& findings) {
  const Labels job{{"training_job", name}};
  std::vector<Metric> out;
  add_job(state, job, now, out);
  const auto groups = reaches(state);
  add_groups(groups, job, out);
  add_ranks(
      state, job,
      {.name = "ddpdoctor_rank_collectives_total",
       .counter = true,
       .help = "Collectives that the rank has begun, over all groups."},
      [](const RankMark& rank) { return static_cast<double>(rank.collectives); }, out);
  add_ranks(
      state, job,
      {.name = "ddpdoctor_rank_behind_collectives",
       .help =
           "Collectives that the rank is behind the first of its groups: the straggler's is high."},
      [&groups](const RankMark& rank) { return behind(rank, groups); }, out);
  add_ranks(
      state, job,
      {.name = "ddpdoctor_rank_events_lost_total",
       .counter = true,
       .help = "Events of the rank that had no room in its recording."},
      [](const RankMark& rank) { return static_cast<double>(rank.lost); }, out);
  Metric said{
      .name = "ddpdoctor_findings_total", .counter = true, .help = "Findings that were reported."};
  for (const auto& [kind, times] : findings) {
    said.samples.push_back({with(job, "kind", kind), static_cast<double>(times)});
  }
  out.push_back(std::move(said));
  return out;
}

}  // namespace ddpdoctor::fleet
