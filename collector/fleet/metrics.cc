// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/metrics.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::fleet {
namespace {

/// A label value, with the characters escaped that the format reserves.
std::string label(std::string_view text) {
  std::string out;
  for (const char letter : base::printable(text)) {
    out += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  return out;
}

/// One metric with its help text; samples are added.
class Family {
 public:
  Family(std::string& out, std::string_view name, std::string_view type, std::string_view help)
      : out_(out), name_(name) {
    out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
  }
  void sample(const std::string& labels, double value) {
    out_ += fmt::format("{}{{{}}} {}\n", name_, labels, value);
  }

 private:
  std::string& out_;
  std::string_view name_;
};

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

void add_job(const JobState& state, const std::string& job, double now, std::string& out) {
  Family(out, "ddpdoctor_job_seconds_without_progress", "gauge",
         "Seconds since any rank began a collective.")
      .sample(job, state.still_for(now));
  Family(out, "ddpdoctor_job_ranks_unheard", "gauge", "Ranks of the world that no node speaks of.")
      .sample(job, static_cast<double>(state.unheard_ranks().size()));
  std::map<std::string_view, int> count{{"heard", 0}, {"silent", 0}, {"ended", 0}};
  for (const auto& [name, node] : state.nodes()) {
    ++count[node.marks.ended ? "ended" : state.is_silent(node, now) ? "silent" : "heard"];
  }
  Family nodes(out, "ddpdoctor_nodes", "gauge", "Nodes of the job by whether they are heard.");
  for (const auto& [what, number] : count) {
    nodes.sample(fmt::format("{},state=\"{}\"", job, what), number);
  }
}

void add_groups(const std::map<std::string, Reach>& groups, const std::string& job,
                std::string& out) {
  Family begun(out, "ddpdoctor_group_collectives_total", "counter",
               "Collectives that the first rank of the group has begun.");
  for (const auto& [name, reach] : groups) {
    begun.sample(fmt::format("{},group=\"{}\"", job, label(name)), reach.most);
  }
  Family completed(out, "ddpdoctor_group_completed_total", "counter",
                   "Collectives of the group that a rank has completed.");
  for (const auto& [name, reach] : groups) {
    completed.sample(fmt::format("{},group=\"{}\"", job, label(name)), reach.completed);
  }
  Family spread(out, "ddpdoctor_group_spread_collectives", "gauge",
                "Collectives between the first and the last rank of the group.");
  for (const auto& [name, reach] : groups) {
    spread.sample(fmt::format("{},group=\"{}\"", job, label(name)), reach.most - reach.least);
  }
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
void add_ranks(const JobState& state, const std::string& job, Family family, Value value) {
  for (const auto& [name, node] : state.nodes()) {
    const std::string host = label(node.marks.host);
    for (const RankMark& rank : node.marks.ranks) {
      family.sample(fmt::format("{},host=\"{}\",rank=\"{}\"", job, host, rank.rank), value(rank));
    }
  }
}

}  // namespace

std::string metrics(const JobState& state, const std::string& name, double now,
                    const std::map<std::string, std::uint64_t>& findings) {
  const std::string job = fmt::format("training_job=\"{}\"", label(name));
  std::string out;
  add_job(state, job, now, out);
  const auto groups = reaches(state);
  add_groups(groups, job, out);
  add_ranks(state, job,
            {out, "ddpdoctor_rank_collectives_total", "counter",
             "Collectives that the rank has begun, over all groups."},
            [](const RankMark& rank) { return static_cast<double>(rank.collectives); });
  add_ranks(
      state, job,
      {out, "ddpdoctor_rank_behind_collectives", "gauge",
       "Collectives that the rank is behind the first of its groups: the straggler's is high."},
      [&groups](const RankMark& rank) { return behind(rank, groups); });
  add_ranks(state, job,
            {out, "ddpdoctor_rank_events_lost_total", "counter",
             "Events of the rank that had no room in its recording."},
            [](const RankMark& rank) { return static_cast<double>(rank.lost); });
  Family said(out, "ddpdoctor_findings_total", "counter", "Findings that were reported.");
  for (const auto& [kind, times] : findings) {
    said.sample(fmt::format("{},kind=\"{}\"", job, label(kind)), static_cast<double>(times));
  }
  return out;
}

}  // namespace ddpdoctor::fleet
