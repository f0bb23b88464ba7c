// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/dump_identity.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "collector/imports/stack_dumps/process_titles.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

// A temporary fact, used while files are read.
constexpr std::string_view kNumbered = "numbered-dump";
constexpr std::size_t kMostWarned = 8;

using Place = std::pair<std::string, std::int64_t>;  // machine and pid

Place place_of(const model::Process& process) {
  return {process.host, process.pid};
}

/// Two containers may use the same pid and have no name: then the process titles distinguish them.
std::string machine_of(const model::Process& process) {
  const Coordinates place = place_of_title(process.command);
  return place.empty() ? process.host : process.host + "|" + said(place);
}

/// The processes that may be the only rank of a file; empty if there are several.
std::vector<model::Process*> only_rank(std::vector<model::Process>& processes) {
  std::set<Identity> candidates;
  std::vector<model::Process*> out;
  for (model::Process& process : processes) {
    if (process.role == model::Role::kRank) {
      candidates.insert(identity_of(process));
      out.push_back(&process);
    }
  }
  return candidates.size() == 1 ? out : std::vector<model::Process*>();
}

/// A process without a pid has only this number as its rank.
void forget_number(const std::map<Place, std::set<model::Rank>>& numbers, model::JobModel& job) {
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto given = numbers.find(place_of(process));
      if (process.pid == 0 && process.rank && given != numbers.end() &&
          given->second.contains(*process.rank)) {
        process.rank.reset();
      }
    }
  }
}

}  // namespace

Identity identity_of(const model::Process& process) {
  const std::int64_t rank = process.rank.value_or(-1);
  if (process.pid != 0 || process.rank) {
    return {machine_of(process), process.pid, rank};
  }
  return {process.host + "/?", process.threads.empty() ? 0 : process.threads.front().tid, rank};
}

void share_ranks(std::vector<model::Process>& processes) {
  std::map<Place, std::set<model::Rank>> claimed;
  for (const model::Process& process : processes) {
    if (process.pid != 0 && process.rank) {
      claimed[{machine_of(process), process.pid}].insert(*process.rank);
    }
  }
  for (model::Process& process : processes) {
    const auto ranks = claimed.find({machine_of(process), process.pid});
    if (process.role == model::Role::kRank && !process.rank && ranks != claimed.end() &&
        ranks->second.size() == 1) {
      process.rank = *ranks->second.begin();
    }
  }
}

void give_rank(std::vector<model::Process>& processes, model::Rank rank) {
  if (processes.size() == 1 && processes.front().role == model::Role::kOther &&
      processes.front().command.empty()) {  // native frames that no job is known by
    processes.front().role = model::Role::kRank;
  }
  for (model::Process* process : only_rank(processes)) {
    process->rank = rank;
  }
}

void note_number(std::vector<model::Process>& processes, model::Rank number, model::JobModel& job) {
  const auto looks = only_rank(processes);
  if (looks.empty()) {
    return;
  }
  const model::Process& process = *looks.front();
  if (process.pid == 0) {  // nothing else distinguishes it from others
    give_rank(processes, number);
  }
  job.facts.push_back({.rank = number,
                       .pid = process.pid,
                       .kind = std::string(kNumbered),
                       .fields = {{"host", process.host}}});
}

bool take_numbers(model::JobModel& job) {
  std::map<Place, std::set<model::Rank>> numbers;
  const auto files = std::count_if(job.facts.begin(), job.facts.end(),
                                   [](const auto& fact) { return fact.kind == kNumbered; });
  std::erase_if(job.facts, [&numbers](const model::Fact& fact) {
    const bool numbered = fact.kind == kNumbered;
    if (numbered && fact.pid && fact.rank) {
      numbers[{fact.text("host").value_or(""), *fact.pid}].insert(*fact.rank);
    }
    return numbered;
  });
  if (files == 1) {  // the number of one file alone counts anything
    forget_number(numbers, job);
    return false;
  }
  const bool count_looks = std::any_of(numbers.begin(), numbers.end(), [](const auto& given) {
    return given.first.second != 0 && given.second.size() > 1;
  });
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto given = numbers.find(place_of(process));
      if (process.role == model::Role::kRank && given != numbers.end() && !count_looks &&
          process.pid != 0) {
        process.rank = *given->second.begin();
      }
    }
  }
  std::size_t warned = 0;
  for (const auto& [place, given] : numbers) {
    if (given.size() > 1 && place.second != 0 && warned++ < kMostWarned) {
      job.coverage.warnings.push_back(
          fmt::format("{} files are of pid {}: the numbers in their names count snapshots of one "
                      "process. If they are ranks in several containers, name them rank_0, rank_1",
                      given.size(), place.second));
    }
  }
  return count_looks;
}

std::vector<model::Observation> separated(std::vector<model::Process> processes, double interval) {
  std::map<Identity, std::size_t> looks;
  for (const model::Process& process : processes) {
    ++looks[identity_of(process)];
  }
  std::size_t most = 0;
  for (const auto& [identity, count] : looks) {
    most = std::max(most, count);
  }
  std::vector<model::Observation> out(most);
  for (std::size_t i = 0; i < most; ++i) {
    out[i].time = interval * static_cast<double>(i);
  }
  for (model::Process& process : processes) {
    const std::size_t left = looks[identity_of(process)]--;
    out[most - left].processes.push_back(std::move(process));
  }
  return out;
}

void spread_looks(std::vector<model::Observation>& observations) {
  for (std::size_t i = observations.size(); i-- > 1;) {
    std::set<Identity> seen;
    std::vector<model::Process> stay;
    auto& here = observations[i].processes;
    for (auto process = here.rbegin(); process != here.rend(); ++process) {
      const Identity identity = identity_of(*process);
      const auto lacks_it = [&identity](const model::Observation& one) {
        return std::none_of(one.processes.begin(), one.processes.end(),
                            [&](const auto& other) { return identity_of(other) == identity; });
      };
      const auto end = observations.rend();
      const auto before = std::find_if(end - static_cast<std::ptrdiff_t>(i), end, lacks_it);
      const bool again = !seen.insert(identity).second && model::was_dumped(*process);
      (again && before != end ? before->processes : stay).push_back(std::move(*process));
    }
    std::reverse(stay.begin(), stay.end());
    here = std::move(stay);
  }
}

std::string target_of(const model::Process& process) {
  if (process.threads.empty() || role_of_title(process.command)) {
    return {};
  }
  const auto& frames = process.threads[0].frames;
  const auto start = std::find_if(frames.begin(), frames.end(), [](const model::Frame& frame) {
    return base::path_contains(frame.file, "multiprocessing/process.py") &&
           frame.function.ends_with("_bootstrap");
  });
  std::string out;
  for (auto frame = frames.begin(); start != frames.end() && frame != start; ++frame) {
    if (frame->language == model::Language::kPython && model::is_user_file(frame->file)) {
      out = fmt::format("{}:{}", frame->file, frame->function);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
