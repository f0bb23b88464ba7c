// SPDX-License-Identifier: Apache-2.0
// Processes and threads of each snapshot become observations; torch's state in the newest one
// becomes groups and calls. Ranks come from the environment at the start of a process, else from
// os.environ, else from torch itself, else from the start order.
#include "collector/model/building/build_model.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <sys/wait.h>

#include "base/host_name.h"
#include "collector/model/building/exceptions.h"
#include "collector/model/building/kept_locks.h"
#include "collector/model/building/unlike_variables.h"
#include "collector/model/building/worker_groups.h"
#include "collector/model/coverage.h"
#include "collector/model/environment.h"
#include "collector/model/kept_segments.h"
#include "collector/model/progress.h"
#include "collector/model/questions.h"
#include "collector/model/secrets.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::model {
namespace {

std::optional<int> number_in(const std::map<std::string, std::string>& environment,
                             const std::string& name) {
  const auto found = environment.find(name);
  int value = 0;
  if (found == environment.end()) {
    return std::nullopt;
  }
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value < kMaxWorldSize ? std::optional(value) : std::nullopt;
}

const stacks::ProcessStacks* stacks_of(const Look& look, pid_t pid) {
  const auto found = std::find_if(look.stacks.begin(), look.stacks.end(),
                                  [pid](const auto& stacks) { return stacks.pid == pid; });
  return found == look.stacks.end() ? nullptr : &*found;
}

std::optional<Rank> rank_of(const sources::JobProcess& process,
                            const stacks::ProcessStacks* stacks) {
  if (process.rank) {
    return process.rank;
  }
  if (process.role != sources::JobRole::kRank) {
    return std::nullopt;
  }
  std::optional<int> rank = number_in(process.row.environment, "RANK");
  if (!rank && stacks != nullptr && stacks->python) {
    rank = number_in(stacks->python->environment, "RANK");
  }
  if (!rank && stacks != nullptr && stacks->torch && stacks->torch->rank.value_or(-1) >= 0) {
    rank = stacks->torch->rank;
  }
  return rank ? rank : process.guessed_rank;
}

Role role_of(sources::JobRole role) {
  switch (role) {
    case sources::JobRole::kLauncher:
      return Role::kLauncher;
    case sources::JobRole::kRank:
      return Role::kRank;
    case sources::JobRole::kDataLoaderWorker:
      return Role::kDataLoaderWorker;
    case sources::JobRole::kResourceTracker:
      return Role::kResourceTracker;
    case sources::JobRole::kShmManager:
      return Role::kShmManager;
    case sources::JobRole::kOther:
      return Role::kOther;
  }
  return Role::kOther;
}

std::string capture_text(const stacks::ThreadStack& thread) {
  std::string how;
  switch (thread.method) {
    case stacks::CaptureMethod::kNoStop:
      how = "no stop";
      break;
    case stacks::CaptureMethod::kStopped:
      how = fmt::format("stopped {:.1f} ms", thread.stopped_ms);
      break;
    case stacks::CaptureMethod::kNone:
      how = thread.problem.empty() ? "no stack" : "";
      break;
  }
  return how + (how.empty() || thread.problem.empty() ? "" : "; ") + thread.problem;
}

/// The owner of a mutex as a tid outside the container.
pid_t outer_tid(const stacks::ProcessStacks& process, pid_t inner) {
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [inner](const auto& t) { return t.inner_tid == inner; });
  return found == process.threads.end() ? inner : found->tid;
}

std::optional<WaitsOn> waits_of(const Look& look, const stacks::ProcessStacks& process,
                                const stacks::ThreadStack& thread) {
  if (const auto known = look.waits.find({process.pid, thread.tid}); known != look.waits.end()) {
    const sources::WaitTarget& target = known->second;
    return WaitsOn{.kind = target.kind,
                   .target = target.target,
                   .detail = target.detail,
                   .limit = target.limit};
  }
  if (thread.mutex_owner) {
    return WaitsOn{.kind = "mutex",
                   .target = fmt::format("thread:{}", outer_tid(process, *thread.mutex_owner)),
                   .detail = {}};
  }
  return std::nullopt;
}

std::optional<bool> gil_of(const stacks::ProcessStacks& process,
                           const stacks::ThreadStack& thread) {
  if (thread.holds_gil || !process.python || process.python->gil_moving) {
    return thread.holds_gil;
  }
  if (!process.python->gil_holder) {
    return std::nullopt;
  }
  const pid_t own = thread.inner_tid != 0 ? thread.inner_tid : thread.tid;
  return *process.python->gil_holder == own;
}

Thread thread_of(const Look& look, const stacks::ProcessStacks& process,
                 const stacks::ThreadStack& thread) {
  Thread out;
  out.tid = thread.tid;
  // Python names threads started by C++ "Dummy-3": the kernel's name says more.
  const bool own_name = !thread.python_name.empty() && !thread.python_name.starts_with("Dummy-");
  out.name = own_name ? thread.python_name : thread.name;
  out.state = thread.state;
  out.wchan = thread.wchan;
  out.gil = gil_of(process, thread);
  out.waits_on = waits_of(look, process, thread);
  out.frames = thread.frames;
  if (thread.run_count != 0 || thread.method != stacks::CaptureMethod::kNone) {
    out.run_count = thread.run_count;
  }
  out.capture = capture_text(thread);
  return out;
}

/// How a zombie ended, by its wait status.
std::optional<Exit> exit_of(const sources::ProcessRow& row) {
  if (!row.exit_code || (row.state != 'Z' && row.state != 'X')) {
    return std::nullopt;
  }
  if (WIFSIGNALED(*row.exit_code)) {
    return Exit{.status = {}, .signal = WTERMSIG(*row.exit_code)};
  }
  return Exit{.status = WEXITSTATUS(*row.exit_code), .signal = {}};
}

void add_stacks(const Look& look, const stacks::ProcessStacks& stacks, Process& out) {
  if (stacks.python) {
    out.python_version = stacks.python->version;
    for (const auto& [name, value] : public_environment(stacks.python->environment)) {
      out.environment[name] = value;  // changed after the start: what the program sees
    }
  }
  for (const stacks::ThreadStack& thread : stacks.threads) {
    out.threads.push_back(thread_of(look, stacks, thread));
  }
  std::stable_partition(out.threads.begin(), out.threads.end(),
                        [&out](const Thread& thread) { return thread.tid == out.pid; });
  out.problems.insert(out.problems.end(), stacks.problems.begin(), stacks.problems.end());
}

Process process_of(const Look& look, const sources::JobProcess& source, const std::string& host) {
  const stacks::ProcessStacks* stacks = stacks_of(look, source.row.pid);
  Process out;
  out.host = host;
  out.pid = source.row.pid;
  out.ppid = source.row.ppid;
  out.rank = rank_of(source, stacks);
  out.role = role_of(source.role);
  out.command = public_command(source.row.command);
  out.exe = source.row.exe;
  if (source.row.start_time > 0) {
    out.start_time = source.row.start_time;
  }
  out.state = source.row.state;
  out.wchan = source.row.wchan;
  out.environment = public_environment(source.row.environment);
  out.exit = exit_of(source.row);
  out.cpu_seconds = source.row.cpu_seconds;
  out.io_bytes = source.row.io_bytes;
  if (!source.row.problem.empty()) {
    out.problems.push_back(source.row.problem);
  }
  if (stacks != nullptr) {
    add_stacks(look, *stacks, out);
  }
  return out;
}

/// The world size passed to a rank that waits in the rendezvous: init_process_group(…,
/// world_size=3) leaves no trace in the environment.
std::optional<int> world_size_argument(const stacks::ProcessStacks& process) {
  for (const stacks::ThreadStack& thread : process.threads) {
    for (const stacks::Frame& frame : thread.frames) {
      if (frame.language == Language::kPython && frame.function == "_create_c10d_store") {
        return number_in({frame.locals.begin(), frame.locals.end()}, "world_size");
      }
    }
  }
  return std::nullopt;
}

std::optional<int> believed_world_size(const Look& look) {
  std::optional<int> size = look.tree.world_size;
  for (const stacks::ProcessStacks& stacks : look.stacks) {
    if (!size && stacks.python) {
      size = number_in(stacks.python->environment, "WORLD_SIZE");
    }
    if (!size && stacks.torch) {
      size = stacks.torch->world_size;
    }
    if (!size) {
      size = world_size_argument(stacks);
    }
  }
  return size && *size > 0 && *size <= kMaxWorldSize ? size : std::nullopt;
}

/// The world size that torch knows in one of the processes that are ranks.
std::optional<int> size_of_ranks(const JobModel& job, const Look& look) {
  for (const Process& process : latest(job)->processes) {
    const stacks::ProcessStacks* stacks =
        process.role == Role::kRank && process.rank ? stacks_of(look, process.pid) : nullptr;
    if (stacks != nullptr && stacks->torch && stacks->torch->world_size) {
      return stacks->torch->world_size;
    }
  }
  return std::nullopt;
}

/// The launcher's command, else that of the first rank.
std::vector<std::string> job_command(const JobModel& job, const Observation& now) {
  const Process* chosen = job.launcher_pid ? process(job, *job.launcher_pid) : nullptr;
  for (const Process& p : now.processes) {
    if (chosen == nullptr && p.role == Role::kRank) {
      chosen = &p;
    }
  }
  return chosen == nullptr ? std::vector<std::string>() : chosen->command;
}

/// For each rank, the state from the newest snapshot in which its recorder was read.
std::vector<TorchWitness> witnesses(const JobModel& job, const std::vector<Look>& looks) {
  std::vector<TorchWitness> out;
  for (const Process& p : latest(job)->processes) {
    if (p.role != Role::kRank || !p.rank) {
      continue;
    }
    const stacks::TorchState* state = nullptr;
    for (const Look& look : looks) {
      const stacks::ProcessStacks* stacks = stacks_of(look, p.pid);
      const bool told = stacks != nullptr && stacks->torch;
      if (told && (state == nullptr || stacks->torch->recorder_read || !state->recorder_read)) {
        state = &*stacks->torch;
      }
    }
    if (state != nullptr) {
      out.push_back({.rank = *p.rank, .state = state});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return out;
}

std::pair<std::int64_t, std::ptrdiff_t> torch_mark(const stacks::TorchState& state) {
  const auto completed = std::count_if(state.records.begin(), state.records.end(),
                                       [](const auto& record) { return record.completed; });
  return {state.records.empty() ? -1 : state.records.back().id, completed};
}

/// True if any recorder gained or completed entries between the two newest snapshots.
bool collectives_advanced(const std::vector<Look>& looks) {
  if (looks.size() < 2) {
    return false;
  }
  const Look& before = looks[looks.size() - 2];
  return std::any_of(
      looks.back().stacks.begin(), looks.back().stacks.end(), [&before](const auto& now) {
        const stacks::ProcessStacks* then = stacks_of(before, now.pid);
        return then != nullptr && then->torch && now.torch && then->torch->recorder_read &&
               now.torch->recorder_read && torch_mark(*then->torch) != torch_mark(*now.torch);
      });
}

std::vector<Fact> facts_of(const Look& look) {
  std::vector<Fact> out;
  for (const sources::RawFact& fact : look.facts) {
    out.push_back({.rank = fact.rank, .pid = fact.pid, .kind = fact.kind, .fields = fact.fields});
  }
  return out;
}

}  // namespace

JobModel build_model(const std::vector<Look>& looks) {
  JobModel job;
  if (looks.empty()) {
    return job;
  }
  const std::string host = base::host_name();
  const Look& newest = looks.back();
  job.hosts = {host};
  job.world_size = believed_world_size(newest);
  if (newest.tree.launcher != 0) {
    job.launcher_pid = newest.tree.launcher;
  }
  for (const Look& look : looks) {
    Observation observation;
    observation.time = look.time;
    for (const sources::JobProcess& source : look.tree.processes) {
      observation.processes.push_back(process_of(look, source, host));
    }
    job.observations.push_back(std::move(observation));
  }
  const auto other_groups = keep_one_worker_group(job, newest.tree.named);
  if (other_groups) {
    job.world_size = size_of_ranks(job, newest);
  }
  job.command = job_command(job, job.observations.back());
  job.facts = facts_of(newest);
  if (looks.size() > 1) {
    add_growth(facts_of(looks.front()), job.facts);
  }
  for (Fact& fact : unlike_variables(newest.tree, job.observations.back().processes)) {
    job.facts.push_back(std::move(fact));
  }
  add_torch_evidence(job, witnesses(job, looks));
  name_heirs_of_locks(job);
  add_exceptions(job, newest);
  job.coverage = coverage_of(job, looks);
  if (other_groups) {
    job.coverage.warnings.push_back(*other_groups);
  }
  const Movement seen = movement(job, collectives_advanced(looks));
  job.progress = seen.progress;
  job.seconds_without_progress = seen.seconds_without_progress;
  program::KnownTexts parsed;
  for (const Look& look : looks) {
    parsed.insert(look.texts.begin(), look.texts.end());
  }
  load_sources(job, parsed);
  return job;
}

}  // namespace ddpdoctor::model
