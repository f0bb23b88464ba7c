// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shuffle.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

namespace ddpdoctor::tests {
namespace {

using model::Rank;

class Renumber {
 public:
  explicit Renumber(int world) : world_(world) {}

  void rank(std::optional<Rank>& rank) const {
    if (rank) {
      *rank = of(*rank);
    }
  }
  [[nodiscard]] Rank of(Rank rank) const {
    return rank >= 0 && rank < world_ ? world_ - 1 - rank : rank;
  }
  void number(std::string& text) const {
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
      text = std::to_string(of(std::atoi(text.c_str())));
    }
  }

  void process(model::Process& process) const {
    rank(process.rank);
    for (const char* name : {"RANK", "LOCAL_RANK"}) {
      if (const auto found = process.environment.find(name); found != process.environment.end()) {
        number(found->second);
      }
    }
    for (model::Thread& thread : process.threads) {
      constexpr std::string_view kRank = "rank:";
      if (thread.waits_on && thread.waits_on->target.starts_with(kRank)) {
        std::string text = thread.waits_on->target.substr(kRank.size());
        number(text);
        thread.waits_on->target = std::string(kRank) + text;
      }
      for (model::Frame& frame : thread.frames) {
        locals(frame);
      }
    }
  }

  void call(model::CollectiveCall& call) const {
    call.rank = of(call.rank);
    rank(call.root);
    rank(call.peer);
  }

 private:
  void locals(model::Frame& frame) const {
    static const std::set<std::string> kNames{"src", "dst", "peer", "root"};
    for (auto& [name, value] : frame.locals) {
      if (kNames.contains(name)) {
        number(value);
      }
    }
  }

  int world_;
};

int world_of(const model::JobModel& job) {
  int world = job.world_size.value_or(0);
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      world = std::max(world, process.rank.value_or(-1) + 1);
    }
  }
  return world;
}

/// The number of its ancestors that are listed, too.
int depth_of(const std::vector<model::Process>& all, const model::Process& process) {
  constexpr int kDeepest = 64;
  int depth = 0;
  const model::Process* at = &process;
  while (at != nullptr && depth < kDeepest) {
    const auto parent = std::find_if(
        all.begin(), all.end(), [at](const model::Process& one) { return one.pid == at->ppid; });
    at = parent == all.end() ? nullptr : &*parent;
    depth += at == nullptr ? 0 : 1;
  }
  return depth;
}

}  // namespace

model::RankSet renumbered(const model::RankSet& ranks, int world_size) {
  const Renumber change(world_size);
  model::RankSet out;
  for (const Rank rank : ranks) {
    out.insert(change.of(rank));
  }
  return out;
}

model::JobModel renumbered(model::JobModel job) {
  const int world = world_of(job);
  const Renumber change(world);
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      change.process(process);
    }
  }
  for (model::ProcessGroup& group : job.groups) {
    const bool ascending = std::is_sorted(group.ranks.begin(), group.ranks.end());
    for (Rank& rank : group.ranks) {
      rank = change.of(rank);
    }
    if (ascending) {
      std::sort(group.ranks.begin(), group.ranks.end());
    }
  }
  for (model::CollectiveCall& call : job.collectives) {
    change.call(call);
  }
  for (model::Fact& fact : job.facts) {
    change.rank(fact.rank);
  }
  for (model::Log& log : job.logs) {
    change.rank(log.rank);
  }
  job.coverage.unobserved_ranks = renumbered(job.coverage.unobserved_ranks, world);
  return job;
}

model::JobModel listed_backwards(model::JobModel job) {
  for (model::Observation& observation : job.observations) {
    std::vector<model::Process>& all = observation.processes;
    std::reverse(all.begin(), all.end());
    std::map<pid_t, int> depth;
    for (const model::Process& process : all) {
      depth[process.pid] = depth_of(all, process);
    }
    std::stable_sort(all.begin(), all.end(),
                     [&depth](const model::Process& a, const model::Process& b) {
                       return depth[a.pid] < depth[b.pid];
                     });
  }
  std::reverse(job.groups.begin(), job.groups.end());
  std::reverse(job.collectives.begin(), job.collectives.end());
  std::reverse(job.facts.begin(), job.facts.end());
  return job;
}

bool numbers_matter(const model::JobModel& job) {
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      if (process.environment.contains("RANK") || process.environment.contains("LOCAL_RANK") ||
          process.environment.contains("MASTER_ADDR") ||
          process.environment.contains("MASTER_PORT")) {
        return true;
      }
    }
  }
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (text.find("rank") != std::string::npos || text.find("RANK") != std::string::npos) {
        return true;
      }
    }
  }
  return std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("rank") != std::string::npos || log.text.find("Rank") != std::string::npos;
  });
}

}  // namespace ddpdoctor::tests
