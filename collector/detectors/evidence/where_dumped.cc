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

/// Processes whose main threads are in one function at one line.
struct Group {
  const Place* first = nullptr;
  const model::Frame* inside = nullptr;  // the innermost Python frame of each
  model::RankSet ranks;
  std::vector<pid_t> others;  // processes without a rank

  [[nodiscard]] bool one() const {
    return ranks.size() + others.size() == 1;
  }
};

bool is_there(const Group& group, const Place& place, const model::Frame* inside) {
  const bool known = group.inside != nullptr && inside != nullptr;
  return graph::same_line(group.first->standing.user, place.standing.user) &&
         (group.inside == inside ||
          (known && group.inside->file == inside->file && group.inside->line == inside->line));
}

std::vector<Group> by_line(const std::vector<Place>& all) {
  std::vector<Group> out;
  for (const Place& place : all) {
    const model::Frame* inside = model::innermost_python(*place.standing.thread);
    auto known = std::find_if(out.begin(), out.end(),
                              [&](const Group& one) { return is_there(one, place, inside); });
    if (known == out.end()) {
      out.push_back({.first = &place, .inside = inside, .ranks = {}, .others = {}});
      known = out.end() - 1;
    }
    if (place.process->rank) {
      known->ranks.insert(*place.process->rank);
    } else {
      known->others.push_back(place.process->pid);
    }
  }
  return out;
}

/// "ranks 0-3", "process 4711", "rank 0 and 2 other processes".
std::string sleepers_said(const Group& group) {
  const std::size_t others = group.others.size();
  if (group.ranks.empty()) {
    return others > 1        ? fmt::format("{} processes", others)
           : group.others[0] ? fmt::format("process {}", group.others[0])
                             : std::string("a process");
  }
  return others == 0 ? said(group.ranks)
                     : fmt::format("{} and {} other {}", said(group.ranks), others,
                                   others == 1 ? "process" : "processes");
}

std::string sleep_at(const Group& group) {
  return fmt::format("{} {} at {}", sleepers_said(group), group.one() ? "sleeps" : "sleep",
                     line_of(group.first->standing.user));
}

/// "ranks 0-3 are all in ncclCommWindowRegister (pynccl_wrapper.py:545)": no rank is elsewhere.
std::string all_in_one(const Group& group) {
  const model::CallSite& user = group.first->standing.user;
  const std::string function =
      group.inside == nullptr ? std::string() : named_function(group.inside->function);
  const std::size_t count = group.ranks.size() + group.others.size();
  const std::string all =
      fmt::format("{} are {}", sleepers_said(group), count == 2 ? "both" : "all");
  return function.empty() || function == "<module>"
             ? fmt::format("{} at {}", all, line_of(user))
             : fmt::format("{} in {} ({})", all, base::printable(function), line_of(user));
}

std::string summary_of_sleep(const std::vector<Group>& groups) {
  if (groups.size() > 1) {
    return fmt::format("{}, {}{}; the dumps do not show what keeps them there", sleep_at(groups[0]),
                       sleep_at(groups[1]), groups.size() > 2 ? ", others elsewhere" : "");
  }
  return groups[0].one() ? sleep_at(groups[0]) + "; one dump does not show what keeps it there"
                         : all_in_one(groups[0]) + "; one dump does not show what keeps them there";
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
  const std::vector<Group> groups = by_line(all);
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.summary = summary_of_sleep(groups);
  for (const Group& group : groups) {
    if (finding.locations.size() < kMostSleepers) {
      finding.locations.push_back(location(
          group.first->standing.user, group.ranks,
          fmt::format("{} {} here", sleepers_said(group), group.one() ? "sleeps" : "sleep")));
    }
  }
  finding.fix =
      "Run `ddpdoctor attach PID` on its launcher: it reads all processes twice, and what the "
      "kernel knows of their waits.";
  return finding;
}

}  // namespace ddpdoctor::detectors
