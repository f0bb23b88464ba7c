// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/live.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::graph {
namespace {

constexpr std::size_t kNewest = 20;  // number of collectives over which a rank's lag is averaged

std::string call_text(const Standing& standing, const std::vector<GroupView>& groups) {
  const BlockedCall& call = *standing.call;
  const auto group = std::find_if(groups.begin(), groups.end(), [&call](const GroupView& view) {
    return view.group.id == call.group;
  });
  std::string out =
      call.operation.empty() ? std::string(activity_name(standing.activity)) : call.operation;
  out += call.sequence ? fmt::format(" #{}", *call.sequence) : "";
  out += group != groups.end() ? fmt::format(" of {}", group->group.name) : "";
  out += call.peer ? fmt::format(" with rank {}", *call.peer) : "";
  return out;
}

std::string place_text(const model::CallSite& site) {
  if (!site.known()) {
    return {};
  }
  return fmt::format("{}:{}{}", base::file_name(site.file), site.line,
                     site.function.empty() ? "" : " in " + site.function);
}

/// Mean seconds behind the first rank, over the newest collectives that all of `ranks` called.
std::map<model::Rank, double> lags(const std::map<model::Rank, Calls>& ranks) {
  std::map<std::int64_t, std::map<model::Rank, double>> arrivals;
  for (const auto& [rank, calls] : ranks) {
    for (std::size_t i = calls.size() - std::min(calls.size(), 2 * kNewest); i < calls.size();
         ++i) {
      if (calls[i]->time) {
        arrivals[calls[i]->sequence][rank] = *calls[i]->time;
      }
    }
  }
  std::erase_if(arrivals,
                [&ranks](const auto& entry) { return entry.second.size() < ranks.size(); });
  while (arrivals.size() > kNewest) {
    arrivals.erase(arrivals.begin());
  }
  std::map<model::Rank, double> mean;
  for (const auto& [sequence, times] : arrivals) {
    const double first =
        std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->second;
    for (const auto& [rank, time] : times) {
      mean[rank] += (time - first) / static_cast<double>(arrivals.size());
    }
  }
  return mean;
}

LiveGroup live_group(const GroupView& view, const History& history, std::uint64_t& calls) {
  LiveGroup out{.name = view.group.name.empty() ? view.group.id : view.group.name,
                .backend = view.group.backend,
                .sequence = 0,
                .operation = {},
                .operations = {},
                .joined = {},
                .missing = {}};
  for (const RankProgress& progress : view.progress) {
    out.sequence = std::max(out.sequence, progress.enqueued);
    calls += static_cast<std::uint64_t>(std::max(std::int64_t{0}, progress.enqueued));
  }
  for (const RankProgress& progress : view.progress) {
    (progress.enqueued >= out.sequence ? out.joined : out.missing).insert(progress.rank);
    const auto* call = history.at(view.group.id, progress.rank, out.sequence);
    if (call != nullptr && !call->operation.empty()) {
      out.operations[call->operation].insert(progress.rank);
      out.operation = out.operation.empty() ? call->operation : out.operation;
    }
  }
  if (out.operations.size() < 2) {
    out.operations.clear();
  }
  return out;
}

/// Edges with the same target and reason become one sentence.
std::vector<std::string> wait_sentences(const WaitForGraph& graph) {
  struct Waiting {
    model::RankSet ranks;
    std::vector<std::string> others;
  };
  std::map<std::pair<std::string, std::string>, Waiting> by_end;
  constexpr std::string_view kRank = "rank:";
  const auto spoken = [](std::string node) {
    std::replace(node.begin(), node.end(), ':', ' ');
    return node;
  };
  for (const Edge& edge : graph.edges()) {
    Waiting& waiting = by_end[{edge.to, edge.why}];
    if (edge.from.starts_with(kRank)) {
      waiting.ranks.insert(std::atoi(edge.from.c_str() + kRank.size()));
    } else {
      waiting.others.push_back(spoken(edge.from));
    }
  }
  std::vector<std::string> out;
  for (const auto& [end, waiting] : by_end) {
    const std::size_t count = waiting.ranks.size() + waiting.others.size();
    std::string who = waiting.ranks.empty() ? "" : waiting.ranks.said();
    for (const std::string& other : waiting.others) {
      who += (who.empty() ? "" : ", ") + other;
    }
    out.push_back(fmt::format("{} wait{} for {}: {}", who, count == 1 ? "s" : "", spoken(end.first),
                              end.second));
  }
  return out;
}

}  // namespace

LiveView live_view(const model::JobModel& job) {
  const Examination examination = examine(job);
  LiveView out;
  out.title = fmt::format("{}", fmt::join(job.command, " "));
  out.world_size = job.world_size;
  out.still_for =
      job.progress == model::Progress::kStill ? job.seconds_without_progress : std::nullopt;
  out.ended = job.ended;
  out.notes = job.coverage.unobserved;
  std::map<model::Rank, double> lag;
  for (const GroupView& view : examination.groups) {
    if (lag.empty()) {
      lag = lags(examination.history.ranks(view.group.id));
    }
    out.groups.push_back(live_group(view, examination.history, out.calls));
  }
  for (const Standing& standing : examination.standings) {
    LiveRank rank;
    rank.rank = standing.rank;
    rank.pid = standing.process == nullptr ? 0 : standing.process->pid;
    rank.doing = standing.call ? call_text(standing, examination.groups)
                               : std::string(activity_name(standing.activity));
    rank.place = place_text(standing.user);
    if (const auto found = lag.find(standing.rank); found != lag.end()) {
      rank.lag = found->second;
    }
    out.ranks.push_back(std::move(rank));
  }
  out.waits = wait_sentences(examination.waits);
  return out;
}

}  // namespace ddpdoctor::graph
