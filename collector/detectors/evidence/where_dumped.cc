// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/where_dumped.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostSleepers = 4;

/// A process and the line of the user's code in which its main thread sleeps.
struct Place {
  const model::Process* process = nullptr;
  graph::Standing standing;
};

/// Launchers and helpers always wait, and a worker of a DataLoader waits for its next index.
bool may_be_meant(const model::Process& process) {
  return model::was_dumped(process) && alive(process) &&
         (process.role == model::Role::kRank || process.role == model::Role::kOther);
}

/// Its tool says so; tools that do not show states are asked before a hang is certain.
bool sleeps(const graph::Standing& standing) {
  return standing.thread->state == 'S' || standing.thread->state == 'D';
}

std::vector<Place> places(const graph::Examination& examination) {
  std::vector<Place> out;
  for (const model::Process* process : processes(examination.job)) {
    const model::Thread* main = model::main_thread(*process);
    if (main == nullptr || !may_be_meant(*process)) {
      continue;
    }
    Place place{.process = process,
                .standing = graph::standing_of(examination.job, *process, *main)};
    if (main->state == 'R' || place.standing.on_cpu) {
      return {};  // the others may wait for it
    }
    if (place.standing.user.known() && sleeps(place.standing)) {
      out.push_back(std::move(place));
    }
  }
  return out;
}

std::string sleeper(const Place& place) {
  return place.process->rank  ? fmt::format("rank {}", *place.process->rank)
         : place.process->pid ? fmt::format("process {}", place.process->pid)
                              : std::string("a process");
}

}  // namespace

std::optional<Finding> where_dumped(const graph::Examination& examination) {
  if (examination.job.progress != model::Progress::kUnknown || examination.job.ended ||
      model::previous(examination.job) != nullptr) {
    return std::nullopt;
  }
  const std::vector<Place> all = places(examination);
  if (all.empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  const Place& first = all.front();
  finding.summary = fmt::format("{} sleeps at {}; one dump does not show what keeps it there",
                                sleeper(first), line_of(first.standing.user));
  for (const Place& one : all) {
    if (finding.locations.size() < kMostSleepers) {
      const auto rank = one.process->rank;
      finding.locations.push_back(location(one.standing.user,
                                           rank ? model::RankSet{*rank} : model::RankSet{},
                                           fmt::format("{} sleeps here", sleeper(one))));
    }
  }
  finding.fix =
      "Run `ddpdoctor attach PID` on its launcher: it reads all processes twice, and what the "
      "kernel knows of their waits.";
  return finding;
}

}  // namespace ddpdoctor::detectors
