// SPDX-License-Identifier: Apache-2.0
// Clocks of different machines are not compared: looks are matched by their place from the end, not
// by their time.
#include "collector/imports/merge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void merge_observations(std::vector<model::Observation>& whole,
                        std::vector<model::Observation> part) {
  if (part.size() > whole.size()) {
    std::swap(whole, part);
  }
  const std::size_t older = whole.size() - part.size();
  for (std::size_t i = 0; i < part.size(); ++i) {
    append(whole[older + i].processes, std::move(part[i].processes));
  }
}

void merge_groups(std::vector<model::ProcessGroup>& whole, std::vector<model::ProcessGroup> part) {
  for (model::ProcessGroup& group : part) {
    const auto known =
        std::find_if(whole.begin(), whole.end(),
                     [&group](const model::ProcessGroup& other) { return other.id == group.id; });
    if (known == whole.end()) {
      whole.push_back(std::move(group));
    } else if (known->ranks.empty()) {
      known->ranks = std::move(group.ranks);
    }
  }
}

void merge_coverage(model::Coverage& whole, model::Coverage part) {
  append(whole.observed, std::move(part.observed));
  append(whole.unobserved, std::move(part.unobserved));
  append(whole.warnings, std::move(part.warnings));
  whole.events_lost += part.events_lost;
}

/// "ranks 0-2,4: runs on another machine": all of these are among `seen`.
bool all_were_seen(std::string_view sentence, const model::RankSet& seen) {
  if (!take_prefix(sentence, "ranks ") && !take_prefix(sentence, "rank ")) {
    return false;
  }
  std::int64_t next = 0;  // ranks are told in their order
  while (!sentence.starts_with(": ")) {
    const auto first = take_number(sentence, model::kMaxWorldSize - 1);
    const auto last = first && take_prefix(sentence, "-")
                          ? take_number(sentence, model::kMaxWorldSize - 1)
                          : first;
    if (!last || *first < next) {
      return false;
    }
    for (next = *first; next <= *last; ++next) {
      if (!seen.contains(static_cast<model::Rank>(next))) {
        return false;
      }
    }
    take_prefix(sentence, ",");
  }
  return true;
}

/// It is of a rank that was not there, and of no trouble with one that was.
bool tells_of_elsewhere(std::string_view sentence) {
  constexpr std::array<std::string_view, 3> kReasons = {
      ": runs on another machine", ": no process of it was found on this machine",
      ": only one process was asked for"};
  return std::any_of(kReasons.begin(), kReasons.end(),
                     [sentence](std::string_view reason) { return sentence.ends_with(reason); });
}

/// What one capture could not see another may have seen.
void forget_seen_ranks(model::JobModel& whole) {
  std::vector<model::Rank> with_stacks;
  for (const model::Observation& observation : whole.observations) {
    for (const model::Process& process : observation.processes) {
      if (process.rank && process.role == model::Role::kRank && !process.threads.empty()) {
        whole.coverage.unobserved_ranks.erase(*process.rank);
        with_stacks.push_back(*process.rank);
      }
    }
  }
  const model::RankSet seen(std::move(with_stacks));
  std::erase_if(whole.coverage.unobserved, [&seen](const std::string& sentence) {
    return tells_of_elsewhere(sentence) && all_were_seen(sentence, seen);
  });
  if (whole.world_size && seen.size() == static_cast<std::size_t>(*whole.world_size)) {
    std::erase_if(whole.coverage.warnings, [](const std::string& sentence) {
      return sentence.ends_with("the others are on other machines and were not observed");
    });
  }
}

/// A log says nothing about whether the job moves or is over: another capture does.
bool is_mere_log(const model::JobModel& job) {
  return !job.logs.empty() && job.observations.empty() && job.collectives.empty();
}

model::Progress merged(model::Progress a, model::Progress b) {
  if (a == model::Progress::kMoving || b == model::Progress::kMoving) {
    return model::Progress::kMoving;
  }
  return a == b ? a : model::Progress::kUnknown;
}

/// The ranks' processes at the newest look, by pid.
std::map<pid_t, const model::Process*> ranks_of(const model::JobModel& job) {
  std::map<pid_t, const model::Process*> out;
  for (std::size_t i = job.observations.size(); i > 0 && out.empty(); --i) {
    for (const model::Process& process : job.observations[i - 1].processes) {
      if (process.rank && process.role == model::Role::kRank && process.pid > 0 &&
          process.start_time) {
        out.emplace(process.pid, &process);
      }
    }
  }
  return out;
}

bool is_same(const model::Process& a, const model::Process& b) {
  constexpr double kRounding = 1;  // seconds
  return a.host == b.host && a.rank == b.rank &&
         std::abs(*a.start_time - *b.start_time) < kRounding;
}

}  // namespace

bool saw_the_same(const model::JobModel& a, const model::JobModel& b) {
  if (a.hosts != b.hosts) {
    return false;
  }
  const auto of_a = ranks_of(a);
  const auto of_b = ranks_of(b);
  return std::any_of(of_a.begin(), of_a.end(), [&of_b](const auto& one) {
    const auto other = of_b.find(one.first);
    return other != of_b.end() && is_same(*one.second, *other->second);
  });
}

void merge(model::JobModel& whole, model::JobModel part) {
  const bool only_part_looked = is_mere_log(whole) && !is_mere_log(part);
  const bool both_looked = !is_mere_log(whole) && !is_mere_log(part);
  whole.world_size = std::max(whole.world_size, part.world_size);
  if (whole.command.empty()) {
    whole.command = std::move(part.command);
  }
  for (std::string& host : part.hosts) {
    if (std::find(whole.hosts.begin(), whole.hosts.end(), host) == whole.hosts.end()) {
      whole.hosts.push_back(std::move(host));
    }
  }
  if (!whole.launcher_pid) {
    whole.launcher_pid = part.launcher_pid;
  }
  merge_groups(whole.groups, std::move(part.groups));
  merge_observations(whole.observations, std::move(part.observations));
  append(whole.collectives, std::move(part.collectives));
  append(whole.facts, std::move(part.facts));
  append(whole.logs, std::move(part.logs));
  for (auto& [file, lines] : part.sources) {
    whole.sources[file].merge(lines);
  }
  whole.coverage.unobserved_ranks =
      whole.coverage.unobserved_ranks.united(part.coverage.unobserved_ranks);
  merge_coverage(whole.coverage, std::move(part.coverage));
  forget_seen_ranks(whole);
  if (both_looked) {
    whole.progress = merged(whole.progress, part.progress);
    whole.ended = whole.ended && part.ended;
    whole.history_complete = whole.history_complete && part.history_complete;
  } else if (only_part_looked) {
    whole.progress = part.progress;
    whole.ended = part.ended;
    whole.history_complete = part.history_complete;
    whole.seconds_without_progress = part.seconds_without_progress;
  }
  if (part.seconds_without_progress && whole.seconds_without_progress) {
    whole.seconds_without_progress =
        std::min(*whole.seconds_without_progress, *part.seconds_without_progress);
  }
}

}  // namespace ddpdoctor::imports
