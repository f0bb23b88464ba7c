// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/dump_processes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/imports/stack_dumps/dump_forks.h"
#include "collector/imports/stack_dumps/dump_identity.h"
#include "collector/imports/stack_dumps/joined_dumps.h"
#include "collector/imports/stack_dumps/listed_processes.h"
#include "collector/imports/stack_dumps/numbered_ranks.h"
#include "collector/imports/stack_dumps/process_titles.h"
#include "collector/imports/stack_dumps/ranks_of_pids.h"
#include "collector/model/accelerators.h"
#include "collector/model/progress.h"
#include "collector/model/questions.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

// Seconds; snapshots closer to each other cannot prove a hang.
constexpr double kShortestInterval = 2;

bool has_file(const model::Thread& thread, std::string_view part, std::string_view function = {}) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const model::Frame& frame) {
    return frame.language == model::Language::kPython && base::path_contains(frame.file, part) &&
           (function.empty() || frame.function.ends_with(function));
  });
}

bool has_native(const model::Process& process, std::string_view part) {
  return std::any_of(
      process.threads.begin(), process.threads.end(),
      [part](const model::Thread& thread) { return model::has_native_frame(thread, part); });
}

bool has_python(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
      return frame.language == model::Language::kPython;
    });
  });
}

bool names(const model::Process& process, std::string_view word) {
  return std::any_of(process.command.begin(), process.command.end(),
                     [word](const auto& one) { return one.find(word) != std::string::npos; });
}

bool launches(const model::Process& process, const model::Thread& main) {
  return has_file(main, "torch/distributed/launcher/") ||
         has_file(main, "torch/distributed/elastic/agent/") ||
         has_file(main, "torch/distributed/run.py") ||
         has_file(main, "torch/multiprocessing/spawn.py", "join") ||
         has_file(main, "torch/multiprocessing/spawn.py", "start_processes") ||
         has_file(main, "accelerate/commands/launch.py") || has_file(main, "deepspeed/launcher/") ||
         (model::user_frame(main) == nullptr &&  // a rank may keep the command of its launcher
          (names(process, "torch.distributed.run") || names(process, "torch.distributed.launch") ||
           names(process, "/torchrun")));
}

/// SGLang and vLLM start their ranks with multiprocessing.
bool serves_a_model(const model::Thread& main) {
  return has_file(main, "scheduler.py", "run_scheduler_process") ||
         has_file(main, "multiproc_executor.py", "worker_main") ||
         has_file(main, "multiproc_executor.py", "worker_busy_loop");
}

/// A process that multiprocessing started for itself or for the user, and that is not a rank.
bool serves(const model::Thread& main) {
  const bool started = has_file(main, "multiprocessing/process.py", "_bootstrap");
  const bool as_rank = has_file(main, "torch/multiprocessing/spawn.py", "_wrap") ||
                       has_file(main, "torch/distributed/") || serves_a_model(main);
  return started && !as_rank;
}

/// Of the processes in which multiprocessing runs one function, all are ranks if one is.
void give_roles(std::vector<StackDump>& dumps) {
  std::set<std::string> targets;
  for (StackDump& dump : dumps) {
    dump.process.role = role_in_dump(dump.process);
    if (dump.process.role == model::Role::kRank) {
      targets.insert(target_of(dump.process));
    }
  }
  targets.erase("");
  for (StackDump& dump : dumps) {
    if (dump.process.role == model::Role::kOther && targets.contains(target_of(dump.process))) {
      dump.process.role = model::Role::kRank;
    }
  }
}

/// In the runtime of a device, called by torch or by the program itself.
bool uses_a_gpu(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return std::any_of(thread.frames.begin(), thread.frames.end(), model::is_in_device_runtime);
  });
}

model::Role role_of_native(const model::Process& process) {
  const bool in_job = has_native(process, "c10d::ProcessGroup") || has_native(process, "gloo::") ||
                      has_native(process, "ncclProxy") || has_native(process, "c10d::Work") ||
                      has_native(process, "c10d::Reducer") || has_native(process, "PMPI_") ||
                      has_native(process, "c10d::broadcast_coalesced") ||
                      has_native(process, "ncclComm") || uses_a_gpu(process);
  return in_job ? model::Role::kRank : model::Role::kOther;
}

/// A rank whose number its command gives as a local one.
bool has_local_rank(const model::Process& process) {
  return process.role == model::Role::kRank && process.rank && process.pid != 0 &&
         model::was_dumped(process) && has_only_local_rank(process.command) &&
         process.rank == rank_in_command(process.command);
}

/// Files of several machines may be numbered from 0 on each: two processes with one number are two
/// different, unknown ranks. So are two processes whose commands have one local rank.
void forget_local_ranks(model::JobModel& job) {
  std::map<model::Rank, std::set<std::string>> hosts;
  std::map<model::Rank, std::set<pid_t>> locals;
  const auto dumped = [](const model::Process& process) {
    return process.role == model::Role::kRank && process.rank && !process.host.empty() &&
           model::was_dumped(process);
  };
  for (const model::Process& process : job.observations.back().processes) {
    if (dumped(process)) {
      hosts[*process.rank].insert(process.host);
    }
    if (has_local_rank(process)) {
      locals[*process.rank].insert(process.pid);
    }
  }
  const auto several = [](const auto& one) { return one.second.size() > 1; };
  const bool twice = std::any_of(hosts.begin(), hosts.end(), several);
  const bool twice_local = std::any_of(locals.begin(), locals.end(), several);
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      if ((twice && dumped(process)) || (twice_local && has_local_rank(process))) {
        process.rank.reset();
      }
    }
  }
}

/// A log only told that a rank is elsewhere; a dump of another file shows where.
void drop_told_places(model::JobModel& job) {
  for (model::Observation& observation : job.observations) {
    model::RankSet shown;
    for (const model::Process& process : observation.processes) {
      if (process.rank && process.role == model::Role::kRank && shows_frames(process)) {
        shown.insert(*process.rank);
      }
    }
    std::erase_if(observation.processes, [&shown](const model::Process& process) {
      return process.pid == 0 && process.rank && shown.contains(*process.rank) && !process.exit &&
             !shows_frames(process);
    });
  }
}

/// Both newest snapshots show the same processes: only then does a difference mean progress.
bool comparable(const model::JobModel& job) {
  const model::Observation* before = model::previous(job);
  if (before == nullptr) {
    return false;
  }
  std::set<Identity> then;
  std::set<Identity> now;
  for (const model::Process& process : before->processes) {
    then.insert(identity_of(process));
  }
  for (const model::Process& process : model::latest(job)->processes) {
    now.insert(identity_of(process));
  }
  return then == now;
}

/// A process that was not dumped was not observed; one that was dumped needs no flight record.
void note_unobserved(model::JobModel& job) {
  for (const model::Process& process : job.observations.back().processes) {
    if (process.rank && shows_frames(process)) {
      job.coverage.unobserved_ranks =
          job.coverage.unobserved_ranks.minus(model::RankSet{*process.rank});
    }
  }
  const model::RankSet seen = model::ranks_seen(job);
  for (const model::Rank rank : model::all_ranks(job)) {
    if (!seen.contains(rank)) {
      job.coverage.unobserved_ranks.insert(rank);
    }
  }
}

/// A thread waits for its next batch, as DataLoader does.
bool waits_for_batch(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return has_file(thread, "torch/utils/data/dataloader.py", "_try_get_data") ||
           has_file(thread, "torch/utils/data/dataloader.py", "_get_data");
  });
}

/// The only process that may have started this child: the only rank, the only one that waits for a
/// batch, or the only one without known Python code that waits for no other rank.
const model::Process* parent_of_child(const model::Observation& now) {
  std::vector<const model::Process*> ranks;
  std::vector<const model::Process*> waiting;
  std::vector<const model::Process*> elsewhere;
  for (const model::Process& process : now.processes) {
    if (process.role == model::Role::kRank && process.pid != 0) {
      ranks.push_back(&process);
      if (waits_for_batch(process)) {
        waiting.push_back(&process);
      }
      if (!has_python(process) && !process.threads.empty() &&
          !model::has_native_frame(process.threads.front(), "c10d::")) {
        elsewhere.push_back(&process);
      }
    }
  }
  const auto& candidates = ranks.size() == 1 ? ranks : waiting.empty() ? elsewhere : waiting;
  return candidates.size() == 1 ? candidates.front() : nullptr;
}

/// True if the worker is in the dataset: a user's file is below the worker's loop. Without Python
/// frames: it computes, or waits for a lock.
bool works_on_batch(const model::Process& worker) {
  const auto& frames = worker.threads.front().frames;
  if (!has_python(worker)) {
    return std::any_of(frames.begin(), frames.end(), [](const model::Frame& frame) {
      return frame.function.starts_with("at::") || frame.function.starts_with("gomp_") ||
             frame.function.find("lll_lock_wait") != std::string::npos;
    });
  }
  const auto loop = std::find_if(frames.begin(), frames.end(), [](const model::Frame& frame) {
    return frame.function.ends_with("_worker_loop");
  });
  return std::any_of(frames.begin(), loop, [](const model::Frame& frame) {
    return frame.language == model::Language::kPython && model::is_user_file(frame.file);
  });
}

void give_parents(model::Observation& now) {
  const model::Process* parent = parent_of_child(now);
  for (model::Process& process : now.processes) {
    const bool native_child = process.role == model::Role::kOther && !has_python(process);
    if (parent != nullptr && !process.threads.empty() &&
        (process.role == model::Role::kDataLoaderWorker || native_child) && process.ppid < 0 &&
        process.pid > parent->pid && works_on_batch(process)) {
      process.ppid = parent->pid;
    }
  }
}

bool is_nameless(const StackDump& dump) {
  return dump.identity.empty() && dump.process.pid == 0 && !dump.process.rank &&
         std::all_of(dump.process.threads.begin(), dump.process.threads.end(),
                     [](const model::Thread& thread) { return thread.tid == 0; });
}

}  // namespace

model::Role role_in_dump(const model::Process& process) {
  if (process.threads.empty()) {
    return model::Role::kOther;
  }
  const model::Thread& main = process.threads.front();
  if (const auto titled = role_of_title(process.command)) {
    return *titled;
  }
  if (has_file(main, "torch/utils/data/_utils/worker.py", "_worker_loop") ||
      main.name.starts_with("pt_data_worker")) {
    return model::Role::kDataLoaderWorker;
  }
  if (has_file(main, "multiprocessing/resource_tracker.py") || names(process, "resource_tracker")) {
    return model::Role::kResourceTracker;
  }
  if (names(process, "torch_shm_manager")) {
    return model::Role::kShmManager;
  }
  if (launches(process, main)) {
    return model::Role::kLauncher;
  }
  if (!has_python(process)) {
    return role_of_native(process);
  }
  const bool forks = has_file(main, "multiprocessing/forkserver.py");
  return serves(main) || forks ? model::Role::kOther : model::Role::kRank;
}

model::JobModel job_of_dumps(std::vector<StackDump> dumps, std::string_view path,
                             std::string_view tool) {
  model::JobModel job;
  relate_forks(dumps, job);
  double interval = 0;
  give_roles(dumps);
  std::size_t index = 0;
  for (StackDump& dump : dumps) {
    ++index;
    if (is_nameless(dump)) {  // nothing says that it is the process of another dump
      dump.identity = fmt::format("dump {}", index);
    }
    const bool named = dump.process.rank.has_value();  // by a line before or above it
    if (named && dump.process.role == model::Role::kOther && !has_python(dump.process)) {
      dump.process.role = model::Role::kRank;
    }
    const auto told = named ? dump.process.rank : rank_in_command(dump.process.command);
    dump.process.rank = dump.process.role == model::Role::kRank ? told : std::nullopt;
    give_tids(fmt::format("{}\n{}", path, dump.identity), dump.process);
    for (model::Thread& thread : dump.process.threads) {
      thread.capture = fmt::format("{}{}{}", model::kDumpedFrom, tool,
                                   dump.one_of_many ? model::kOneOfMany : "");
    }
    interval = std::max(interval, dump.after.value_or(0));
    for (auto& [file, lines] : dump.sources) {
      job.sources[file].merge(lines);
    }
  }
  const bool of_workers = std::all_of(dumps.begin(), dumps.end(), [](const StackDump& dump) {
    return dump.process.role == model::Role::kDataLoaderWorker;
  });
  const std::string host = of_workers ? "" : host_in_path(path);  // worker3.txt: no machine
  const auto number = rank_in_path(path, dumps);
  std::vector<model::Process> processes;
  processes.reserve(dumps.size());
  for (StackDump& dump : dumps) {
    dump.process.host = dump.process.host.empty() ? host : dump.process.host;
    processes.push_back(std::move(dump.process));
  }
  if (const auto rank = rank_in_path(path, {})) {
    give_rank(processes, *rank);
  } else if (number) {
    note_number(processes, *number, job);
  }
  join_tools(processes);
  share_ranks(processes);
  job.coverage.observed.push_back(fmt::format("{} stack dump{} ({}) in {}", processes.size(),
                                              processes.size() == 1 ? "" : "s", tool, path));
  job.observations = separated(std::move(processes), interval);
  return job;
}

bool settle_dumps(model::JobModel& job) {
  const auto any_dumped = [](const model::Observation& observation) {
    return std::any_of(observation.processes.begin(), observation.processes.end(),
                       model::was_dumped);
  };
  if (!std::any_of(job.observations.begin(), job.observations.end(), any_dumped)) {
    note_states(job);
    give_states(job);
    forget_rows(job);
    return false;
  }
  const bool supposed_looks = take_numbers(job);
  if (job.observations.size() == 1) {
    join_tools(job.observations.front().processes);
    share_ranks(job.observations.front().processes);
    job.observations = separated(std::move(job.observations.front().processes), 0);
  } else {
    spread_looks(job.observations);
  }
  take_rows(job);
  give_states(job);
  tell_awaited_child(job);
  forget_local_ranks(job);
  name_the_one_elsewhere(job);
  drop_told_places(job);
  name_by_titles(job);
  set_clients_apart(job);
  take_ranks_of_logs(job);
  number_ranks(job);
  forget_rows(job);
  for (model::Observation& observation : job.observations) {
    give_parents(observation);
  }
  note_unobserved(job);
  model::complete_groups(job);
  if (supposed_looks || !comparable(job)) {
    return true;  // containers may share a pid: two positions of it are not progress
  }
  const model::Movement seen = model::movement(job);
  const bool apart = job.observations.back().time - model::previous(job)->time >= kShortestInterval;
  if (seen.progress == model::Progress::kMoving || apart) {
    job.progress = seen.progress;
    job.seconds_without_progress = seen.seconds_without_progress;
  }
  return true;
}

}  // namespace ddpdoctor::imports
