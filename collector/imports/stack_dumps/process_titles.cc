// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/process_titles.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "collector/imports/stack_dumps/headings.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostNamed = 8;  // processes that a warning names

struct Title {
  std::string_view begins;
  model::Role role;
};

/// The most specific first. A task of Ray is a rank only if its stack says so.
constexpr std::array<Title, 15> kTitles = {{{"sglang::scheduler", model::Role::kRank},
                                            {kHeadingTitle, model::Role::kRank},
                                            {"sglang::", model::Role::kOther},
                                            {"VLLM::Worker", model::Role::kRank},
                                            {"VLLM::EngineCore", model::Role::kOther},
                                            {"VLLM::", model::Role::kOther},
                                            {"ray::IDLE", model::Role::kOther},
                                            {"ray::TaskRunner", model::Role::kOther},
                                            {"ray::main_task", model::Role::kOther},
                                            {"ray::RolloutManager", model::Role::kOther},
                                            {"ray-dashboard", model::Role::kOther},
                                            {"raylet", model::Role::kOther},
                                            {"gcs_server", model::Role::kOther},
                                            {"pt_elastic", model::Role::kLauncher},
                                            {"mpirun", model::Role::kLauncher}}};

/// {"DP": 1} for vLLM's engine.
Coordinates place_of_engine(const std::vector<std::string>& command) {
  constexpr std::string_view kEngine = "VLLM::EngineCore_";
  return !command.empty() && command.front().starts_with(kEngine)
             ? coordinates_of(std::string_view(command.front()).substr(kEngine.size()))
             : Coordinates();
}

/// Engines without workers are the ranks of the group in which they communicate: either each
/// computes itself, or its workers were not dumped.
void take_engines_for_ranks(model::JobModel& job) {
  std::set<Coordinates> places;
  bool workers = false;
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      workers = workers || process.role == model::Role::kRank;
      if (const Coordinates place = place_of_engine(process.command); !place.empty()) {
        places.insert(place);
      }
    }
  }
  if (workers || places.size() < 2) {
    return;
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      if (!place_of_engine(process.command).empty()) {
        process.role = model::Role::kRank;
      }
    }
  }
}

}  // namespace

std::optional<model::Role> role_of_title(const std::vector<std::string>& command) {
  if (command.empty()) {
    return std::nullopt;
  }
  const auto* const known = std::find_if(
      kTitles.begin(), kTitles.end(),
      [&command](const Title& title) { return command.front().starts_with(title.begins); });
  return known == kTitles.end() ? std::nullopt : std::optional(known->role);
}

Coordinates place_of_title(const std::vector<std::string>& command) {
  if (role_of_title(command) != model::Role::kRank) {
    return place_of_engine(command);
  }
  const std::string& title = command.front();
  const std::size_t at = title.find('_');
  return at == std::string::npos ? Coordinates() : coordinates_of(title.substr(at + 1));
}

void name_by_titles(model::JobModel& job) {
  take_engines_for_ranks(job);
  std::set<Coordinates> places;
  // Several processes have the same coordinates: pids of several nodes, or several servers.
  bool several = false;
  for (const model::Observation& observation : job.observations) {
    std::map<Coordinates, std::set<std::pair<std::string, pid_t>>> here;
    for (const model::Process& process : observation.processes) {
      const Coordinates place = place_of_title(process.command);
      if (!place.empty() && !process.rank && process.role == model::Role::kRank) {
        places.insert(place);
        here[place].emplace(process.host, process.pid);
      }
    }
    several = several || std::any_of(here.begin(), here.end(),
                                     [](const auto& one) { return one.second.size() > 1; });
  }
  const Layout layout = several ? Layout() : layout_of(places);
  const auto& ranks = layout.ranks;
  if (ranks.empty() || !model::ranks_seen(job).empty()) {
    return;
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto rank = ranks.find(place_of_title(process.command));
      if (rank != ranks.end() && !process.rank && process.role == model::Role::kRank) {
        process.rank = rank->second;
      }
    }
  }
  if (layout.gaps) {
    job.world_size = std::max(job.world_size.value_or(0), static_cast<int>(layout.least));
  }
  std::string told;
  std::size_t named = 0;
  for (const auto& [place, rank] : ranks) {
    if (named++ < kMostNamed) {
      told += fmt::format("{}rank {} is {}", told.empty() ? ": " : ", ", rank, said(place));
    }
  }
  job.coverage.warnings.push_back(
      fmt::format("ranks are counted from the places that the processes' titles name{}", told));
}

}  // namespace ddpdoctor::imports
