// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/look.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/monitor/value_facts.h"
#include "collector/sources/waits/context.h"
#include "collector/stacks/capture.h"
#include "collector/stacks/target/maps_table.h"

namespace ddpdoctor::monitor {

namespace {

using Stacks = std::vector<stacks::ProcessStacks>;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

stacks::CaptureOptions capture_options(const ObserveOptions& options, ValueFacts& values,
                                       stacks::MapsTable& maps) {
  return {.allow_stop = options.allow_stop,
          .native = options.native,
          .torch_state = !options.glance,
          .glance = options.glance,
          .visitor = options.values && !options.glance ? values.visitor() : nullptr,
          .maps = &maps};
}

std::vector<pid_t> pids_of(const sources::JobTree& tree) {
  std::vector<pid_t> pids;
  pids.reserve(tree.processes.size());
  for (const sources::JobProcess& process : tree.processes) {
    pids.push_back(process.row.pid);
  }
  return pids;
}

bool has_frames(const stacks::ProcessStacks& process) {
  return std::any_of(process.threads.begin(), process.threads.end(),
                     [](const stacks::ThreadStack& thread) { return !thread.frames.empty(); });
}

/// Stacks of the earlier snapshot that are still valid, by pid. A process that was unreadable then
/// is not tried again.
std::map<pid_t, const stacks::ProcessStacks*> still_valid(const model::Look& before,
                                                          const sources::JobTree& tree) {
  std::map<pid_t, const stacks::ProcessStacks*> valid;
  for (const stacks::ProcessStacks& process : before.stacks) {
    const sources::JobProcess* then = before.tree.find(process.pid);
    const sources::JobProcess* now = tree.find(process.pid);
    const bool same =
        then != nullptr && now != nullptr && then->row.start_ticks == now->row.start_ticks;
    if (same && (!has_frames(process) || has_not_run(process, stacks::run_counts(process.pid)))) {
      valid.emplace(process.pid, &process);
    }
  }
  return valid;
}

Stacks joined(const std::vector<pid_t>& pids,
              const std::map<pid_t, const stacks::ProcessStacks*>& kept, Stacks fresh) {
  Stacks all;
  all.reserve(pids.size());
  auto next = fresh.begin();
  for (const pid_t pid : pids) {
    const auto old = kept.find(pid);
    all.push_back(old != kept.end() ? *old->second : std::move(*next++));
  }
  return all;
}

bool on_cpu_or_in_kernel(const stacks::ThreadStack& thread) {
  // A thread that had to be stopped, or that no method could read, was running.
  return thread.state == 'R' || thread.state == 'D' ||
         thread.method == stacks::CaptureMethod::kStopped ||
         (thread.method == stacks::CaptureMethod::kNone && thread.frames.empty());
}

bool runs_python(const stacks::ThreadStack& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kPython;
  });
}

/// True inside torch.distributed or a backward pass, before any frame outside torch. The backend's
/// own threads have no Python frames and always wait there.
bool waits_in_torch(const stacks::ThreadStack& thread) {
  if (!runs_python(thread)) {
    return false;
  }
  for (const stacks::Frame& frame : thread.frames) {
    const bool python = frame.language == stacks::Language::kPython;
    if (python ? frame.file.find("torch/distributed/") != std::string::npos ||
                     frame.function == "_engine_run_backward"
               : frame.function.find("c10d::") != std::string::npos) {
      return true;
    }
    if (python && frame.file.find("torch/") == std::string::npos) {
      return false;
    }
  }
  return false;
}

/// A rank that sleeps, saves or waits for its own program may be working: only a second snapshot
/// can tell.
bool waits_for_ranks(const stacks::ProcessStacks& rank) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), waits_in_torch);
}

/// The ranks whose recorder has entries, and the newest entry of all.
struct Recorders {
  std::set<int> ranks;
  double newest = 0;
};

Recorders recorders(const model::Look& look) {
  Recorders found;
  for (std::size_t i = 0; i < look.stacks.size() && i < look.tree.processes.size(); ++i) {
    const auto& torch = look.stacks[i].torch;
    const sources::JobProcess& process = look.tree.processes[i];
    if (process.role != sources::JobRole::kRank || !process.rank || !torch ||
        !torch->recorder_read || torch->records.empty()) {
      continue;
    }
    found.ranks.insert(*process.rank);
    for (const stacks::FlightRecord& record : torch->records) {
      constexpr double kNanosecond = 1e-9;
      found.newest = std::max(found.newest, static_cast<double>(record.created_ns) * kNanosecond);
    }
  }
  return found;
}

}  // namespace

base::Result<model::Look> first_look(pid_t pid, const ObserveOptions& options) {
  model::Look look;
  look.whole_tree = options.whole_tree;
  look.tree = TRY(options.processes == nullptr
                      ? sources::find_job(pid, options.whole_tree)
                      : sources::find_job(pid, options.whole_tree, *options.processes));
  look.time = now_seconds();
  ValueFacts values;
  stacks::MapsTable maps;
  look.stacks = stacks::capture(pids_of(look.tree), capture_options(options, values, maps));
  sources::refine_roles(look.tree, look.stacks);
  sources::WaitContext context(look.tree, look.stacks, &maps);
  look.waits = sources::wait_targets(context, look.stacks);
  look.facts = sources::surroundings(context, look.stacks);
  values.add_to(look);
  return look;
}

base::Result<model::Look> next_look(pid_t pid, const model::Look& before,
                                    const ObserveOptions& options) {
  model::Look look;
  look.whole_tree = options.whole_tree;
  look.tree = TRY(sources::find_job(pid, options.whole_tree));
  look.time = now_seconds();
  const std::vector<pid_t> pids = pids_of(look.tree);
  const auto kept = still_valid(before, look.tree);
  std::vector<pid_t> moved;
  std::copy_if(pids.begin(), pids.end(), std::back_inserter(moved),
               [&kept](pid_t each) { return !kept.contains(each); });
  ValueFacts values(before.texts);
  stacks::MapsTable maps;
  look.stacks = joined(pids, kept, stacks::capture(moved, capture_options(options, values, maps)));
  sources::refine_roles(look.tree, look.stacks);
  sources::WaitContext context(look.tree, look.stacks, &maps);
  if (moved.empty() && pids == pids_of(before.tree)) {
    look.waits = before.waits;
  } else {
    look.waits = sources::wait_targets(context, look.stacks);
  }
  look.facts = sources::surroundings(context, look.stacks);
  values.add_to(look, &before);
  return look;
}

bool has_not_run(const stacks::ProcessStacks& before,
                 const std::vector<std::pair<pid_t, std::uint64_t>>& now) {
  if (now.empty() || now.size() != before.threads.size()) {
    return false;
  }
  std::map<pid_t, std::uint64_t> counts(now.begin(), now.end());
  return std::all_of(before.threads.begin(), before.threads.end(),
                     [&counts](const stacks::ThreadStack& thread) {
                       const auto count = counts.find(thread.tid);
                       return count != counts.end() && count->second == thread.run_count;
                     });
}

std::optional<double> still_by_recorders(const model::Look& look, double quiet_seconds) {
  std::set<int> ranks;
  for (const sources::JobProcess& process : look.tree.processes) {
    if (process.role == sources::JobRole::kRank) {
      ranks.insert(process.rank.value_or(-1));
    }
  }
  const bool all_ranks =
      look.tree.world_size && ranks.size() == static_cast<std::size_t>(*look.tree.world_size);
  const Recorders found = recorders(look);
  const double age = look.time - found.newest;
  if (!all_ranks || found.ranks != ranks || age < quiet_seconds) {
    return std::nullopt;
  }
  for (const stacks::ProcessStacks& process : look.stacks) {
    const sources::JobProcess* row = look.tree.find(process.pid);
    const bool works = row != nullptr && (row->role == sources::JobRole::kRank ||
                                          row->role == sources::JobRole::kDataLoaderWorker);
    if (works &&
        (process.threads.empty() ||
         std::any_of(process.threads.begin(), process.threads.end(), on_cpu_or_in_kernel))) {
      return std::nullopt;
    }
  }
  return age;
}

std::vector<pid_t> outside_torch(const model::Look& look) {
  std::set<pid_t> out;
  for (const stacks::ProcessStacks& process : look.stacks) {
    const sources::JobProcess* row = look.tree.find(process.pid);
    if (row != nullptr && row->role == sources::JobRole::kRank && !waits_for_ranks(process)) {
      out.insert(process.pid);
    }
  }
  // Parents precede children.
  for (const sources::JobProcess& process : look.tree.processes) {
    if (process.role != sources::JobRole::kRank && out.contains(process.row.ppid)) {
      out.insert(process.row.pid);
    }
  }
  return {out.begin(), out.end()};
}

bool waits_for_outsider(const model::Look& look) {
  constexpr std::array<std::string_view, 4> kChannels = {"socket", "pipe", "fifo", "file"};
  return std::any_of(look.waits.begin(), look.waits.end(), [&](const auto& wait) {
    const auto& thread = wait.first;  // names that a lambda may use, for clang 14, too
    const auto& target = wait.second;
    const sources::JobProcess* process = look.tree.find(thread.first);
    if (process == nullptr || process->role != sources::JobRole::kRank ||
        thread.first != thread.second ||
        std::find(kChannels.begin(), kChannels.end(), target.kind) == kChannels.end()) {
      return false;
    }
    const bool inside =
        std::any_of(look.tree.processes.begin(), look.tree.processes.end(), [&](const auto& other) {
          return other.row.pid != thread.first && other.role != sources::JobRole::kOther &&
                 target.target == "pid:" + std::to_string(other.row.pid);
        });
    return !inside;
  });
}

bool has_stirred(const model::Look& look, const std::vector<pid_t>& pids) {
  constexpr std::int64_t kBytesOfWork = 16384;
  return std::any_of(pids.begin(), pids.end(), [&look](pid_t pid) {
    const sources::JobProcess* before = look.tree.find(pid);
    auto now = sources::read_process(pid);
    if (before == nullptr || !now) {
      return true;
    }
    sources::complete(*now);
    if (before->role == sources::JobRole::kOther) {
      return true;
    }
    const bool wrote = before->row.io_bytes && now->io_bytes &&
                       *now->io_bytes - *before->row.io_bytes >= kBytesOfWork;
    return now->state == 'R' || now->state == 'D' || wrote ||
           now->cpu_seconds > before->row.cpu_seconds;
  });
}

}  // namespace ddpdoctor::monitor
