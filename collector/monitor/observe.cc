// SPDX-License-Identifier: Apache-2.0
// Two snapshots distinguish hung from slow. If torch's flight recorders already show a long time
// without calls, and no thread is on a CPU, their clock replaces the first snapshot and the wait is
// saved.
#include "collector/monitor/observe.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/building/build_model.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/monitor/look.h"
#include "collector/sources/processes/access.h"

namespace ddpdoctor::monitor {

namespace {

constexpr int kUsualSamples = 2;
constexpr int kMpiSamples = 6;
constexpr double kMpiInterval = 0.37;  // share of the usual interval

// Seconds, and number of intervals, for which a recorder must be silent to replace a snapshot: most
// healthy steps are shorter.
constexpr double kQuietSeconds = 2;
constexpr double kQuietIntervals = 4;

// Seconds; a slow server sends bytes at least this often.
constexpr double kSlowServer = 2;

// Seconds; most steps are shorter, so the batches that a process keeps have grown by then.
constexpr double kSlowStep = 1.5;

// A working thread shows CPU time by then: the system counts it in steps of 10 ms.
constexpr std::chrono::milliseconds kLongEnoughToStir{80};

bool saw_a_thread(const model::Look& look) {
  return std::any_of(look.stacks.begin(), look.stacks.end(),
                     [](const stacks::ProcessStacks& process) { return !process.threads.empty(); });
}

bool saw_a_frame(const model::Look& look) {
  return std::any_of(
      look.stacks.begin(), look.stacks.end(), [](const stacks::ProcessStacks& process) {
        return std::any_of(
            process.threads.begin(), process.threads.end(),
            [](const stacks::ThreadStack& thread) { return !thread.frames.empty(); });
      });
}

/// A rank waits in MPI, which polls and records nothing: with two snapshots, a healthy loop over
/// one line looks like a hang.
bool stands_in_mpi(const model::Look& look) {
  return std::any_of(
      look.stacks.begin(), look.stacks.end(), [](const stacks::ProcessStacks& process) {
        return std::any_of(process.threads.begin(), process.threads.end(),
                           [](const stacks::ThreadStack& thread) {
                             return std::any_of(thread.frames.begin(), thread.frames.end(),
                                                [](const stacks::Frame& frame) {
                                                  return model::is_mpi_function(frame.function);
                                                });
                           });
      });
}

/// A process keeps many shared-memory segments: a later snapshot shows whether their number grows.
bool keeps_segments(const model::Look& look) {
  return std::any_of(look.facts.begin(), look.facts.end(),
                     [](const sources::RawFact& fact) { return fact.kind == "shm-kept"; });
}

/// The reason why nothing could be observed; an empty `what` if something could.
base::Error blindness(pid_t pid, const model::Look& look) {
  if (saw_a_frame(look)) {
    return {};
  }
  if (base::Error reason = sources::why_unreadable(pid); !reason.what.empty()) {
    return reason;
  }
  if (saw_a_thread(look)) {
    return {};
  }
  for (const stacks::ProcessStacks& process : look.stacks) {
    if (!process.problems.empty()) {
      return {
          .what = fmt::format("pid {} could not be observed: {}", pid, process.problems.front()),
          .hint = {}};
    }
  }
  return {.what = fmt::format("pid {} ended while ddpdoctor read it", pid), .hint = {}};
}

/// The snapshots after the first. If the job ends meanwhile, returns those taken so far.
std::vector<model::Look> look_on(pid_t pid, model::Look first, const ObserveOptions& options,
                                 std::string& ended) {
  std::vector<model::Look> looks;
  looks.push_back(std::move(first));
  for (int i = 1; i < options.samples; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
    auto next = next_look(pid, looks.back(), options);
    if (!next) {
      ended = fmt::format("only {} of {} snapshots: {}", i, options.samples, next.error().what);
      break;
    }
    looks.push_back(std::move(*next));
  }
  return looks;
}

}  // namespace

base::Result<model::JobModel> observe(pid_t pid, const ObserveOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  model::Look first = TRY(first_look(pid, options));
  if (base::Error blind = blindness(pid, first); !blind.what.empty()) {
    return tl::make_unexpected(std::move(blind));
  }
  const double quiet = std::max(kQuietSeconds, kQuietIntervals * options.interval);
  auto silence = options.samples == kUsualSamples ? still_by_recorders(first, quiet) : std::nullopt;
  if (const auto doubtful = outside_torch(first); silence && !doubtful.empty()) {
    std::this_thread::sleep_until(began + kLongEnoughToStir);
    if (has_stirred(first, doubtful)) {
      silence.reset();
    }
  }
  ObserveOptions more = options;
  if (options.samples == kUsualSamples && waits_for_outsider(first)) {
    silence.reset();
    more.interval = std::max(options.interval, kSlowServer);
  }
  if (options.samples == kUsualSamples && keeps_segments(first)) {
    silence.reset();
    more.interval = std::max(more.interval, kSlowStep);
  }
  std::vector<model::Look> looks;
  std::string ended;
  if (silence) {
    looks.push_back(std::move(first));
  } else {
    if (options.samples == kUsualSamples && stands_in_mpi(first)) {
      more.samples = kMpiSamples;
      more.interval = options.interval * kMpiInterval;
    }
    looks = look_on(pid, std::move(first), more, ended);
  }
  model::JobModel job = model::build_model(looks);
  model::drop_idle_values(job.facts);
  if (silence) {
    job.coverage.observed.push_back(fmt::format(
        "one snapshot was enough: no collective started for {} by torch's flight recorders",
        base::duration(*silence)));
  } else if (looks.size() > 1) {
    job.coverage.observed.push_back(
        fmt::format("{} snapshots, {} apart", looks.size(), base::duration(more.interval)));
  }
  if (!ended.empty()) {
    job.coverage.warnings.push_back(std::move(ended));
  }
  return job;
}

void note_what_it_is_not(model::JobModel& job) {
  bool python = false;
  bool rank = false;
  for (const model::Process& process : job.observations.back().processes) {
    python = python || !process.python_version.empty();
    rank = rank || process.rank.has_value();
  }
  if (!python) {
    job.coverage.warnings.emplace_back(
        "no Python was found in these processes: native stacks only");
  } else if (!rank) {
    job.coverage.warnings.emplace_back(
        "none of these processes is a rank of a distributed job: no RANK in an environment, no "
        "process group in memory");
  }
}

}  // namespace ddpdoctor::monitor
