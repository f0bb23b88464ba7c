// SPDX-License-Identifier: Apache-2.0
#include "collector/model/progress.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/model/building/polled_calls.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

/// seconds; recorders with a newer entry say nothing about a hang, because a healthy step may take
/// as long
constexpr double kQuietSeconds = 2;

using Place = std::vector<std::pair<std::string, int>>;

Place python_lines(const Thread& thread) {
  Place out;
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      out.emplace_back(frame.file, frame.line);
    }
  }
  return out;
}

/// Lines of Python; for a program without Python, instruction addresses in its own code.
Place place_of(const Thread& thread) {
  Place out = python_lines(thread);
  if (out.empty()) {
    for (const Frame* frame : user_frames(thread)) {
      out.emplace_back(fmt::format("{} {:x}", frame->file, frame->address), frame->line);
    }
  }
  return out;
}

/// The thread polls NCCL for one call in a loop: its lines change, but it waits.
bool polls_one_call(const Thread& before, const Thread& now) {
  return before.waits_on && now.waits_on && before.waits_on->kind == kPolledCall &&
         now.waits_on->kind == kPolledCall && before.waits_on->target == now.waits_on->target &&
         before.waits_on->detail == now.waits_on->detail;
}

/// The processes whose progress is the job's: its ranks. A job without ranks (no torchrun, one
/// process) is judged by its Python processes.
std::vector<const Process*> movers(const Observation& observation) {
  std::vector<const Process*> ranks;
  std::vector<const Process*> others;
  for (const Process& p : observation.processes) {
    if (p.role == Role::kRank) {
      ranks.push_back(&p);
    } else if (const Thread* main = main_thread(p);
               p.role == Role::kOther && main != nullptr && !python_lines(*main).empty()) {
      others.push_back(&p);
    }
  }
  return ranks.empty() ? others : ranks;
}

/// Finds a process of another observation.
class Processes {
 public:
  explicit Processes(const Observation& observation) {
    for (const Process& process : observation.processes) {
      by_key_.emplace(key(process), &process);
    }
  }
  [[nodiscard]] const Process* same_as(const Process& process) const {
    const auto found = by_key_.find(key(process));
    return found == by_key_.end() ? nullptr : found->second;
  }

 private:
  using Key = std::tuple<Role, std::optional<Rank>, pid_t>;

  static Key key(const Process& process) {
    return {process.role, process.rank, process.pid};
  }

  std::map<Key, const Process*> by_key_;
};

/// Nothing if no rank can be compared.
std::optional<bool> ranks_stood_still(const Observation& before, const Observation& now) {
  bool compared = false;
  const Processes then(before);
  for (const Process* p : movers(now)) {
    const Process* earlier = then.same_as(*p);
    if (earlier == nullptr || earlier->exit.has_value() != p->exit.has_value()) {
      return false;  // it started or ended in between
    }
    const auto same = same_place(*earlier, *p);
    if (same == false) {
      return false;
    }
    compared = compared || same.has_value();
  }
  const Processes today(now);
  for (const Process* p : movers(before)) {
    if (today.same_as(*p) == nullptr) {
      return false;
    }
  }
  return compared ? std::optional(true) : std::nullopt;
}

std::optional<double> newest_collective(const JobModel& job, double not_after) {
  std::optional<double> newest;
  for (const CollectiveCall& call : job.collectives) {
    if (call.time && *call.time <= not_after) {
      newest = std::max(newest.value_or(*call.time), *call.time);
    }
  }
  return newest;
}

bool some_rank_on_cpu(const Observation& now) {
  return std::any_of(now.processes.begin(), now.processes.end(), [](const Process& p) {
    const Thread* main = main_thread(p);
    return p.role == Role::kRank && (p.state == 'R' || (main != nullptr && main->state == 'R'));
  });
}

bool enqueued_between(const JobModel& job, double from, double to) {
  return std::any_of(job.collectives.begin(), job.collectives.end(),
                     [from, to](const CollectiveCall& call) {
                       return call.time && *call.time > from && *call.time <= to;
                     });
}

/// Seconds for which the ranks have not changed, as far back as the observations go.
double still_stretch(const JobModel& job) {
  const auto& all = job.observations;
  std::size_t first = all.size() - 1;
  while (first > 0 && ranks_stood_still(all[first - 1], all[first]) == true) {
    --first;
  }
  return std::max(0.0, all.back().time - all[first].time);
}

/// Without records, a fast loop may be seen at one line twice by chance: all snapshots must agree.
bool all_looks_alike(const JobModel& job) {
  for (std::size_t i = 1; i < job.observations.size(); ++i) {
    if (ranks_stood_still(job.observations[i - 1], job.observations[i]) == false) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<bool> same_place(const Process& before, const Process& now) {
  if (before.exit && now.exit) {
    return true;
  }
  const Thread* old_main = main_thread(before);
  const Thread* new_main = main_thread(now);
  if (old_main == nullptr || new_main == nullptr) {
    return std::nullopt;
  }
  if (polls_one_call(*old_main, *new_main)) {
    return true;
  }
  if (old_main->run_count && old_main->run_count == new_main->run_count) {
    return true;
  }
  const Place old_lines = place_of(*old_main);
  const Place new_lines = place_of(*new_main);
  if (old_lines.empty() || new_lines.empty()) {
    return std::nullopt;
  }
  return old_lines == new_lines;
}

Movement movement(const JobModel& job, bool collectives_advanced) {
  const Observation* now = latest(job);
  const Observation* before = previous(job);
  if (now == nullptr) {
    return {};
  }
  const std::optional<double> newest = newest_collective(job, now->time);
  if (before != nullptr) {
    auto still = ranks_stood_still(*before, *now);
    if (still == true && job.collectives.empty()) {
      still = all_looks_alike(job);
    }
    if (collectives_advanced || still == false || enqueued_between(job, before->time, now->time)) {
      return {.progress = Progress::kMoving, .seconds_without_progress = {}};
    }
    if (still == true) {
      return {.progress = Progress::kStill,
              .seconds_without_progress = newest ? now->time - *newest : still_stretch(job)};
    }
  }
  if (newest && now->time - *newest > kQuietSeconds && !some_rank_on_cpu(*now)) {
    return {.progress = Progress::kStill, .seconds_without_progress = now->time - *newest};
  }
  return {};
}

}  // namespace ddpdoctor::model
