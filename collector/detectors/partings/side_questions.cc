// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/side_questions.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/communicator_setup.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/python_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/mpi_calls.h"
#include "collector/graph/servers.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/contexts.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Examination;
using graph::Standing;

// A rank that spins in the driver at one line does not work: it waits for its device.
bool works(const Examination& examination, const Standing& standing) {
  const bool on_device = standing.activity == Activity::kGpu && !may_hang(examination);
  return standing.on_cpu || standing.moved || standing.activity == Activity::kComputing ||
         on_device || standing.activity == Activity::kCompiling;
}

// It waits for a batch, and one of its DataLoader workers makes progress with one.
bool is_served(const Examination& examination, const Standing& standing) {
  if (standing.activity != Activity::kDataLoader || standing.process == nullptr) {
    return false;
  }
  const auto workers = children_of(examination.job, *standing.process);
  return std::any_of(workers.begin(), workers.end(), [&](const model::Process* worker) {
    const model::Thread* main = model::main_thread(*worker);
    return worker->role == model::Role::kDataLoaderWorker && main != nullptr &&
           graph::standing_of(examination.job, examination.history, *worker, *main).moved;
  });
}

// It waits for a lock, and the thread of its process that holds the lock makes progress.
bool is_let_in_soon(const Examination& examination, const Standing& standing) {
  if (standing.process == nullptr || standing.thread == nullptr ||
      !waits_for_private_lock(examination.job, *standing.thread)) {
    return false;
  }
  const model::Thread* holder =
      holder_of_wanted_lock(examination.job, *standing.process, *standing.thread);
  return holder != nullptr &&
         (holder->state == 'R' || graph::waits_for_a_moment(examination.job, *holder));
}

/// `while not os.path.exists(path): time.sleep(d)`: any process may create the file.
bool polls_for_a_file(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  if (user == nullptr || waits_on(thread, "timer") == nullptr) {
    return false;
  }
  const auto& lines = lines_of(job, user->file);
  const auto loop = program::loop_around(lines, user->line);
  return loop && asks_for(job, lines, *loop, program::Source::kFiles);
}

bool is_of_mpi(const Examination& examination, const Side& side) {
  if (side.standing != nullptr && side.standing->thread != nullptr &&
      graph::mpi_function(side.standing->thread->frames) != nullptr) {
    return true;
  }
  const model::ProcessGroup* group =
      side.call == nullptr ? nullptr : model::group(examination.job, side.call->group);
  return group != nullptr && group->backend == "mpi";
}

/// Python code called it: DDP broadcasts its buffers from C++.
bool calls_broadcast_itself(const Side& side) {
  return side.standing != nullptr && side.standing->thread != nullptr &&
         graph::same_line(side.standing->user, side.site()) &&
         model::has_python_frame(*side.standing->thread, "broadcast", "distributed_c10d.py");
}

/// broadcast_object_list: first the size of the bytes, then the bytes.
bool sends_an_object(const Examination& examination, const Side& side) {
  if (side.call == nullptr || side.call->dtype != "int64" || side.ranks.empty()) {
    return false;
  }
  const model::CollectiveCall* next =
      examination.history.at(side.call->group, side.ranks.front(), side.call->sequence + 1);
  return next != nullptr && next->operation == "broadcast" && next->dtype == "uint8" &&
         graph::same_line(next->call_site, side.call->call_site);
}

/// The forward prepares a backward; no parameter is ready before that begins.
bool has_only_announced(const model::Fact& reducer) {
  if (const auto ready = reducer.number("ready")) {
    return *ready == 0;
  }
  const auto missing = static_cast<double>(reducer.list("not_ready").size());
  return missing > 0 && reducer.number("parameters") == missing;
}

/// The odd side is further down in the function in which the two diverge.
bool is_behind_the_call(const Parting& parting) {
  const auto fork = fork_of(parting.odd.path, parting.rest.path);
  return fork && fork->ours.file == fork->theirs.file && fork->ours.line > fork->theirs.line;
}

/// A member of the group works: the others may only be waiting for it.
bool somebody_is_still_to_come(const Examination& examination, const Parting& parting) {
  const model::ProcessGroup* group = model::group(examination.job, parting.group);
  const model::RankSet working = working_ranks(examination);
  return group == nullptr || group->ranks.empty()
             ? !working.empty()
             : !working.common(model::RankSet(group->ranks)).empty();
}

/// The statement calls a function whose own name, without what it belongs to, is such a name.
template <class Is>
bool calls_any(std::string_view statement, const Is& is) {
  const auto calls = program::calls_in(statement);
  return std::any_of(calls.begin(), calls.end(), [&is](const program::Call& call) {
    return is(program::last_name(call.callee));
  });
}

}  // namespace

bool is_slow(const Examination& examination, const Parting& parting) {
  const bool of_calls = parting.recorded && parting.about != graph::Disagreement::kMissing;
  if (of_calls && !parting.shifted) {
    return false;
  }
  if (of_calls) {  // calls of one kind matched by order: not a problem until all wait
    return somebody_is_still_to_come(examination, parting);
  }
  if (!may_hang(examination) || somebody_is_still_to_come(examination, parting)) {
    return true;
  }
  if (!complete_setups(examination).common(parting.odd.ranks).empty()) {
    return true;
  }
  return std::any_of(parting.odd.ranks.begin(), parting.odd.ranks.end(), [&](model::Rank rank) {
    const Standing* standing = examination.standing(rank);
    return standing != nullptr && !standing->waits_for_ranks() &&
           (works(examination, *standing) || is_served(examination, *standing) ||
            is_let_in_soon(examination, *standing));
  });
}

bool is_gone(const Side& side) {
  return side.call == nullptr &&
         (side.activity() == Activity::kDead || side.activity() == Activity::kAbsent ||
          side.activity() == Activity::kUnobserved);
}

bool is_recorded_behind(const Examination& examination, const Parting& parting) {
  return parting.recorded && parting.odd.activity() == Activity::kUnobserved &&
         examination.history.was_read(parting.odd.ranks.front());
}

bool awaits_an_outsider(const Examination& examination, const Side& side) {
  constexpr std::array<std::string_view, 4> kChannels = {"fifo", "socket", "pipe", "input"};
  const model::Thread* thread = side.standing == nullptr ? nullptr : side.standing->thread;
  if (side.call == nullptr && thread != nullptr && polls_for_a_file(examination.job, *thread)) {
    return graph::an_outsider_goes_on(examination.job);
  }
  if (side.call != nullptr || thread == nullptr || !thread->waits_on ||
      std::find(kChannels.begin(), kChannels.end(), thread->waits_on->kind) == kChannels.end()) {
    return false;
  }
  const auto peer = target_pid(*thread->waits_on);
  const model::Process* server = peer ? model::process(examination.job, *peer) : nullptr;
  return (server == nullptr || !served_rank(examination.job, *server)) &&
         graph::an_outsider_goes_on(examination.job);
}

bool is_blocked_elsewhere(const Side& side) {
  // An actor without a task has no line: it waits for the program, which made no call there.
  if (side.activity() == Activity::kQueue && !side.site().known()) {
    return false;
  }
  switch (side.activity()) {
    case Activity::kPointToPoint:
    case Activity::kNewGroup:
    case Activity::kStore:
    case Activity::kRendezvous:
    case Activity::kDataLoader:
    case Activity::kJoin:
    case Activity::kQueue:
    case Activity::kEventLoop:
    case Activity::kLock:
    case Activity::kImport:
    case Activity::kInput:
    case Activity::kStopped:
      return side.call == nullptr;
    default:
      return false;
  }
}

bool is_at_backward(const model::JobModel& job, const Side& side) {
  const auto& lines = lines_of(job, side.site().file);
  return calls_any(program::statement_at(lines, side.site().line),
                   [](std::string_view name) { return name == "backward"; });
}

bool in_backward(const Examination& examination, const Side& side) {
  if (side.call == nullptr && side.standing != nullptr) {
    return side.activity() == Activity::kDdpBackward;
  }
  if (side.activity() == Activity::kDdpBackward &&
      graph::same_line(side.site(), side.standing->user)) {
    return true;
  }
  return side.operation == "all_reduce" && is_at_backward(examination.job, side);
}

bool stands_in_ddp_forward(const Side& side) {
  return side.activity() == Activity::kDdpForward &&
         (side.call == nullptr || side.operation == "broadcast");
}

bool in_ddp_forward(const Examination& examination, const Side& side, bool shifted) {
  if (!shifted && stands_in_ddp_forward(side)) {
    return true;
  }
  if (side.operation != "broadcast" || !side.site().known() || is_of_mpi(examination, side) ||
      (!shifted && calls_broadcast_itself(side)) || sends_an_object(examination, side)) {
    return false;
  }
  const auto& lines = lines_of(examination.job, side.site().file);
  if (program::statement_at(lines, side.site().line).empty()) {
    return false;
  }
  const auto callees = program::callees_at(lines, side.site().line, examination.job.sources);
  return std::none_of(callees.begin(), callees.end(), [](const std::string& callee) {
    return program::is_ddp(callee) || program::broadcasts(program::last_name(callee));
  });
}

bool lacks_gradients(const model::JobModel& job, const Parting& parting) {
  double left = 0;
  double waiting = 0;
  bool open = false;
  for (const model::Fact* fact : model::facts(job, "reducer")) {
    const double backwards = fact->number("backward").value_or(0);
    if (fact->rank == parting.odd.ranks.front()) {
      left += backwards;
      open = open || (fact->number("finalized").value_or(0) < backwards &&
                      !fact->list("not_ready").empty() &&
                      (!has_only_announced(*fact) || is_behind_the_call(parting)));
    } else if (fact->rank == parting.rest.ranks.front()) {
      waiting += backwards;
    }
  }
  return open && left >= waiting;
}

bool has_backward_to_come(const model::JobModel& job, const Parting& parting) {
  const auto reducers = model::facts(job, "reducer");
  return !is_behind_the_call(parting) &&
         std::any_of(reducers.begin(), reducers.end(), [&parting](const model::Fact* fact) {
           return fact->rank == parting.odd.ranks.front() &&
                  fact->number("finalized").value_or(0) < fact->number("backward").value_or(0) &&
                  has_only_announced(*fact);
         });
}

bool rest_is_past_backward(const Examination& examination, const Parting& parting) {
  const bool recorded = parting.recorded && !parting.shifted && parting.rest.calls() &&
                        parting.about == graph::Disagreement::kOperation;
  return (parting.tie || recorded) && in_backward(examination, parting.odd) &&
         !in_backward(examination, parting.rest);
}

bool has_all_gradients(const model::JobModel& job, const Side& side) {
  bool known = false;
  for (const model::Fact* fact : model::facts(job, "reducer")) {
    const double backwards = fact->number("backward").value_or(0);
    if (fact->rank != side.ranks.front() || backwards < 1 || !fact->number("finalized")) {
      continue;
    }
    known = true;
    if (*fact->number("finalized") < backwards) {
      return false;
    }
  }
  return known;
}

bool gathers_unasked(const model::JobModel& job, const Side& side) {
  const auto& lines = lines_of(job, side.site().file);
  const std::string statement = program::statement_at(lines, side.site().line);
  if (side.call == nullptr || !program::unshards_by(side.operation) || statement.empty() ||
      calls_any(statement, program::gathers)) {
    return false;
  }
  const auto callees = program::callees_at(lines, side.site().line, job.sources);
  return std::none_of(callees.begin(), callees.end(), [](const std::string& callee) {
    return program::gathers(program::last_name(callee));
  });
}

bool gather_different_units(const model::JobModel& job, const Parting& parting) {
  if (!parting.recorded && parting.about == graph::Disagreement::kCallSite) {
    return same_path(parting.odd.path, parting.rest.path);  // camps_by_place() told them apart
  }
  const bool other_unit = parting.about == graph::Disagreement::kShape || parting.shifted;
  return other_unit && gathers_unasked(job, parting.odd) && gathers_unasked(job, parting.rest) &&
         !graph::same_line(parting.odd.site(), parting.rest.site());
}

bool is_before(const Parting& parting) {
  const model::CallSite& odd = parting.odd.site();
  const model::CallSite& rest = parting.rest.site();
  return odd.file == rest.file && odd.function == rest.function && odd.line < rest.line;
}

bool is_without_gradients(const model::JobModel& job, const Side& side) {
  return std::any_of(side.path.begin(), side.path.end(), [&job](const model::CallSite& site) {
    return program::is_without_gradients(lines_of(job, site.file), site.line);
  });
}

bool roots_contradict(const Examination& examination, const std::string& group) {
  const auto names_root = [&group](const Standing& one) {
    return one.activity == Activity::kCollective && one.call && one.call->root &&
           one.call->group == group;
  };
  const auto& all = examination.standings;
  return std::any_of(all.begin(), all.end(), [&](const Standing& one) {
    return names_root(one) && std::any_of(all.begin(), all.end(), [&](const Standing& other) {
             return names_root(other) && other.call->operation == one.call->operation &&
                    other.call->sequence == one.call->sequence &&
                    other.call->root != one.call->root;
           });
  });
}

bool hold_each_other(const Parting& a, const Parting& b) {
  return a.group != b.group && !a.odd.ranks.common(b.rest.ranks).empty() &&
         !a.rest.ranks.common(b.odd.ranks).empty();
}

bool is_mutual(const Parting& a, const std::vector<Parting>& all) {
  return std::any_of(all.begin(), all.end(),
                     [&a](const Parting& b) { return hold_each_other(a, b); });
}

/// Within one group, a cycle of waits is a mismatch, not a matter of order.
bool goes_over_groups(const Examination& examination, const std::vector<std::string>& cycle) {
  std::set<std::string> groups;
  for (const Standing& one : examination.standings) {
    const bool there =
        std::find(cycle.begin(), cycle.end(), fmt::format("rank:{}", one.rank)) != cycle.end();
    if (there && one.call) {
      groups.insert(one.call->group);
    }
  }
  return groups.size() > 1;
}

bool is_in_circle(const Examination& examination, const Parting& parting) {
  const auto has = [](const std::vector<std::string>& cycle, const model::RankSet& ranks) {
    return std::any_of(ranks.begin(), ranks.end(), [&cycle](model::Rank rank) {
      return std::find(cycle.begin(), cycle.end(), fmt::format("rank:{}", rank)) != cycle.end();
    });
  };
  const auto& cycles = examination.waits.cycles();
  return std::any_of(cycles.begin(), cycles.end(), [&](const std::vector<std::string>& cycle) {
    return cycle.size() > 2 && has(cycle, parting.odd.ranks) && has(cycle, parting.rest.ranks) &&
           goes_over_groups(examination, cycle);
  });
}

}  // namespace ddpdoctor::detectors
