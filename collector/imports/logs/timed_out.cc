// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/timed_out.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/actors.h"
#include "collector/imports/stack_dumps/python_traceback.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

/// Exceptions of torch and gloo (1.13 to 2.13) when other ranks do not arrive in time.
bool says_timeout(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kWords = {
      "Timed out waiting ",
      "wait timeout after ",
      "Wait timeout",
      "Socket Timeout",
      "Watchdog caught collective operation timeout",  // the call in which the abort met the rank
      "failed to pass monitoredBarrier"};
  return exception.find("Error") != exception.npos && base::contains_any(exception, kWords);
}

/// Exceptions of a rank after another rank has given up.
bool says_consequence(std::string_view exception) {
  constexpr std::array<std::string_view, 4> kWords = {
      "Connection closed by peer", "Connection reset by peer",
      "successfully reached monitoredBarrier", "Broken pipe"};
  return exception.find("Error") != exception.npos && base::contains_any(exception, kWords);
}

/// According to the watchdog, only calls of the default group are in progress: every rank is a
/// member.
bool all_in_the_world(const model::JobModel& job) {
  const auto open = [](const model::CollectiveCall& call) {
    return call.state == model::CallState::kStarted || call.state == model::CallState::kEnqueued;
  };
  return std::any_of(job.collectives.begin(), job.collectives.end(), open) &&
         std::all_of(job.collectives.begin(), job.collectives.end(),
                     [&](const model::CollectiveCall& call) {
                       const auto group = std::find_if(
                           job.groups.begin(), job.groups.end(),
                           [&call](const model::ProcessGroup& g) { return g.id == call.group; });
                       const bool world = group == job.groups.end()
                                              ? call.group == "0"
                                              : group->name == "default_pg" || group->id == "0";
                       return !open(call) || world;
                     });
}

/// Nearly all of the world's ranks write, and a few between them write nothing: their watchdogs had
/// nothing to wait for. If many are silent, they have a log of their own. `explained`: another rank
/// is absent for a known reason, and the silent ones may wait for it, too.
void add_silent(bool explained, std::map<model::Rank, bool>& known, model::JobModel& job) {
  constexpr std::size_t kSpeakersForEach = 3;
  constexpr std::size_t kMostForEach = 16;
  const bool watched = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("collective operation timeout: Work") != std::string::npos;
  });
  if (known.empty() || known.begin()->first < 0 || !watched) {
    return;
  }
  model::RankSet& unobserved = job.coverage.unobserved_ranks;
  const bool folded = std::any_of(job.logs.begin(), job.logs.end(),
                                  [](const model::Log& log) { return folds_lines(log.text); });
  const bool spoken = unobserved.empty() && !folded;  // and the group is known
  const model::Rank last =
      std::max(known.rbegin()->first, unobserved.empty() ? 0 : unobserved.values().back());
  const auto ranks = static_cast<std::size_t>(last) + 1;
  if (ranks > kMostForEach * known.size()) {
    return;  // excerpts of a very large job
  }
  const bool few =
      spoken && !explained && (ranks - known.size()) * kSpeakersForEach <= known.size();
  for (model::Rank rank = 0; rank < last; ++rank) {
    if (!known.contains(rank) && few) {
      known.emplace(rank, false);
    } else if (!known.contains(rank)) {
      unobserved.insert(rank);
    }
  }
}

/// All known ranks are members of the default group, if they are 0 … n.
void fill_world(const std::map<model::Rank, bool>& known, model::JobModel& job) {
  if (known.empty() || known.begin()->first != 0 ||
      known.rbegin()->first + 1 != static_cast<model::Rank>(known.size())) {
    return;
  }
  const auto world = std::find_if(job.groups.begin(), job.groups.end(), [](const auto& group) {
    return group.name == "default_pg" || group.id == "0";
  });
  model::ProcessGroup& group =
      world != job.groups.end() ? *world
                                : job.groups.emplace_back(model::ProcessGroup{
                                      .id = "0", .name = "default_pg", .backend = {}, .ranks = {}});
  if (group.ranks.empty()) {
    std::transform(known.begin(), known.end(), std::back_inserter(group.ranks),
                   [](const auto& one) { return one.first; });
  }
}

/// This rank has completed what the others have completed, and has not begun what they wait in.
void add_last_completed(model::Rank rank, model::JobModel& job) {
  const model::CollectiveCall* first = nullptr;
  for (const model::CollectiveCall& call : job.collectives) {
    if (call.rank == rank) {
      return;
    }
    const bool open = !model::is_over(call.state) && call.state != model::CallState::kUnknown;
    first = open && (first == nullptr || call.sequence < first->sequence) ? &call : first;
  }
  if (first != nullptr && first->sequence > 1) {
    model::CollectiveCall done;
    done.rank = rank;
    done.group = first->group;
    done.sequence = first->sequence - 1;
    done.state = model::CallState::kCompleted;
    job.collectives.push_back(std::move(done));
  }
}

bool has_timed_out(const model::Process& process) {
  return !process.threads.empty() && process.threads.front().capture.ends_with(kTimedOut);
}

}  // namespace

/// "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0]": 0 has not arrived.
std::optional<model::Rank> awaited_rank(std::string_view line) {
  const auto number = between(line, "retrieving ncclUniqueId from [", "]");
  const auto rank = number ? number_of(*number, model::kMaxWorldSize - 1) : std::nullopt;
  return rank ? std::optional(static_cast<model::Rank>(*rank)) : std::nullopt;
}

std::optional<LastStack> last_stack(std::span<const std::string_view> all) {
  Lines lines(all);
  std::optional<PythonTraceback> last;
  std::size_t heading = 0;
  while (!lines.done()) {
    if (!base::trim(lines.peek()).starts_with(kTracebackHeading)) {
      lines.take();
      continue;
    }
    const std::size_t begun = lines.at();
    PythonTraceback raised = read_python_traceback(lines);
    if (!says_timeout(raised.exception) && !says_consequence(raised.exception)) {
      return std::nullopt;  // a failure of its own
    }
    last = std::move(raised);
    heading = begun;
  }
  if (!last || last->frames.empty()) {
    return std::nullopt;
  }
  const bool timed_out = says_timeout(last->exception);
  return LastStack{.dump = dump_of(std::move(*last)), .timed_out = timed_out, .heading = heading};
}

bool was_ended_while_waiting(const model::Process& process) {
  return !process.threads.empty() && process.threads.front().capture.ends_with(model::kOfTraceback);
}

void add_absent(const std::vector<model::RankSet>& groups, std::map<model::Rank, bool>& raised) {
  constexpr std::size_t kSpeakersForEach = 3;
  for (const model::RankSet& members : groups) {
    model::RankSet silent;
    for (const model::Rank rank : members) {
      const auto known = raised.find(rank);
      if (known == raised.end() || !known->second) {
        silent.insert(rank);
      }
    }
    if (silent.size() * kSpeakersForEach <= members.size() - silent.size()) {
      for (const model::Rank rank : silent) {
        raised.try_emplace(rank, false);
      }
    }
  }
}

void settle_timed_out(std::map<model::Rank, bool> raised, const model::RankSet& gave_up,
                      model::JobModel& job) {
  const bool waited = !job.observations.empty() &&
                      std::any_of(job.observations.back().processes.begin(),
                                  job.observations.back().processes.end(), has_timed_out);
  if (!waited && !all_in_the_world(job)) {
    return;
  }
  if (job.observations.empty()) {
    job.observations.emplace_back();
  }
  auto& processes = job.observations.back().processes;
  for (const model::CollectiveCall& call : job.collectives) {
    bool& told = raised[call.rank];
    told = told || call.state == model::CallState::kEnqueued ||
           call.state == model::CallState::kStarted;
  }
  const bool world = all_in_the_world(job);
  if (world) {
    const bool explained = std::any_of(gave_up.begin(), gave_up.end(), [&job](model::Rank rank) {
      return std::none_of(job.collectives.begin(), job.collectives.end(),
                          [rank](const auto& call) { return call.rank == rank; });
    });
    add_silent(explained, raised, job);
    fill_world(raised, job);
  }
  // Its watchdog was stuck, perhaps until the timeout itself, or had ended after an error of NCCL:
  // its current call is unknown.
  for (const model::Fact& fact : job.facts) {
    const bool stuck =
        (fact.kind == "watchdog-stuck" || fact.kind == "watchdog-error") && fact.rank;
    const bool called =
        stuck && std::any_of(job.collectives.begin(), job.collectives.end(),
                             [&fact](const auto& call) { return call.rank == *fact.rank; });
    if (stuck && !called) {
      job.coverage.unobserved_ranks.insert(*fact.rank);
    }
  }
  for (const auto& [rank, failed] : raised) {
    const bool known =
        std::any_of(processes.begin(), processes.end(),
                    [rank = rank](const model::Process& process) { return process.rank == rank; });
    if (known || failed || job.coverage.unobserved_ranks.contains(rank)) {
      continue;
    }
    model::Process process;
    process.ppid = -1;
    process.rank = rank;
    process.role = model::Role::kRank;
    const bool exited =
        std::any_of(job.facts.begin(), job.facts.end(), [rank = rank](const model::Fact& fact) {
          return fact.kind == model::kExitedByItself && fact.rank == rank;
        });
    if (exited) {
      process.exit = model::Exit{.status = 0, .signal = {}};
    } else {
      model::Thread& main = process.threads.emplace_back();
      main.waits_on =
          model::WaitsOn{.kind = std::string(model::kElsewhere), .target = {}, .detail = {}};
    }
    processes.push_back(std::move(process));
    if (world) {
      add_last_completed(rank, job);
    }
  }
  job.progress = model::Progress::kStill;
}

}  // namespace ddpdoctor::imports
