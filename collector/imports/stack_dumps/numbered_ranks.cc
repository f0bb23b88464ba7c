// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/numbered_ranks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/dump_identity.h"
#include "collector/imports/stack_dumps/listed_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostNumbered = 8;  // processes that a warning names

/// Sorts "node10" after "node9".
std::pair<std::string, std::int64_t> order_of_host(std::string_view host) {
  std::size_t digit = host.size();
  while (digit > 0 && host[digit - 1] >= '0' && host[digit - 1] <= '9') {
    --digit;
  }
  return {std::string(host.substr(0, digit)),
          number_of(host.substr(digit), INT32_MAX).value_or(-1)};
}

/// Processes without a rank, in the order in which a launcher starts its ranks.
std::vector<model::Process*> nameless_ranks(model::Observation& now) {
  std::vector<model::Process*> out;
  for (model::Process& process : now.processes) {
    if (process.role == model::Role::kRank && !process.rank && model::was_dumped(process)) {
      out.push_back(&process);
    }
  }
  const bool numbered =
      std::all_of(out.begin(), out.end(), [](const auto* p) { return p->pid != 0; });
  if (numbered) {
    std::stable_sort(out.begin(), out.end(), [](const model::Process* a, const model::Process* b) {
      return std::pair(order_of_host(a->host), a->pid) < std::pair(order_of_host(b->host), b->pid);
    });
  }
  return out;
}

/// `-m mpi4py.futures.server`: a worker of an MPIPoolExecutor, which its client started.
bool is_mpi_worker(const model::Process& process) {
  const auto of_server = [](const model::Thread& thread) {
    return model::find_python_frame(thread, "<module>", "mpi4py/futures/server.py") != nullptr;
  };
  return std::any_of(process.command.begin(), process.command.end(),
                     [](const std::string& word) {
                       return word.find("mpi4py.futures.server") != std::string::npos;
                     }) ||
         std::any_of(process.threads.begin(), process.threads.end(), of_server);
}

/// A process in the communicator that its stacks show being made.
struct InCommunicator {
  std::int64_t rank = -1;
  std::int64_t size = 0;
};

InCommunicator communicator_of(const model::Process& process) {
  InCommunicator out;
  for (const model::Thread& thread : process.threads) {
    for (const model::Frame& frame : thread.frames) {
      InCommunicator one;
      for (const auto& [name, value] : frame.locals) {
        one.rank = name == kNcclRank ? number_of(value, kMaxRank).value_or(-1) : one.rank;
        one.size = name == kNcclSize ? number_of(value, kMaxRank).value_or(0) : one.size;
      }
      out = one.rank >= 0 && one.size > out.size ? one : out;
    }
  }
  return out;
}

/// Ranks by the arguments of NCCL's functions, if every process shows its own in a communicator of
/// one size: in a smaller one of several, ranks would repeat or be fewer than the processes.
std::vector<model::Rank> ranks_by_nccl(const std::vector<model::Process*>& nameless) {
  std::vector<model::Rank> out;
  std::int64_t size = 0;
  for (const model::Process* process : nameless) {
    const InCommunicator own = communicator_of(*process);
    if (own.rank < 0 || (size != 0 && own.size != size)) {
      return {};
    }
    size = own.size;
    out.push_back(static_cast<model::Rank>(own.rank));
  }
  const bool distinct = model::RankSet(out).size() == out.size();
  return distinct && static_cast<std::int64_t>(out.size()) <= size ? out
                                                                   : std::vector<model::Rank>();
}

}  // namespace

void set_clients_apart(model::JobModel& job) {
  const auto& now = job.observations.back().processes;
  if (std::none_of(now.begin(), now.end(), is_mpi_worker)) {
    return;
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      if (process.role == model::Role::kRank && !process.rank && model::was_dumped(process) &&
          !is_mpi_worker(process)) {
        process.role = model::Role::kOther;
      }
    }
  }
}

void name_the_one_elsewhere(model::JobModel& job) {
  model::RankSet elsewhere;
  for (const model::Process& process : job.observations.back().processes) {
    const model::Thread* main = model::main_thread(process);
    if (process.rank && main != nullptr && main->waits_on &&
        main->waits_on->kind == model::kElsewhere) {
      elsewhere.insert(*process.rank);
    }
  }
  const auto nameless = nameless_ranks(job.observations.back());
  if (elsewhere.size() != 1 || nameless.size() != 1) {
    return;
  }
  const Identity one = identity_of(*nameless.front());
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      if (identity_of(process) == one && process.role == model::Role::kRank && !process.rank) {
        process.rank = elsewhere.front();
      }
    }
  }
  job.coverage.warnings.push_back(fmt::format(
      "the dump is taken for rank {0}: the log shows that all other ranks waited for rank {0}",
      elsewhere.front()));
}

void number_ranks(model::JobModel& job) {
  const auto nameless = nameless_ranks(job.observations.back());
  if (nameless.empty() || !model::ranks_seen(job).empty()) {
    return;
  }
  std::map<Identity, model::Rank> given;
  std::string told;
  const auto siblings = places_among_siblings(job);
  std::vector<model::Rank> places;
  for (const model::Process* process : nameless) {
    const auto place = siblings.find(process->pid);
    if (place != siblings.end()) {
      places.push_back(place->second);
    }
  }
  // In a process table, each at a place of its own.
  const bool listed =
      places.size() == nameless.size() && model::RankSet(places).size() == places.size();
  const auto by_nccl = ranks_by_nccl(nameless);
  for (std::size_t i = 0; i < nameless.size(); ++i) {
    const auto rank = !by_nccl.empty() ? by_nccl[i]
                      : listed         ? places[i]
                                       : static_cast<model::Rank>(i);
    given[identity_of(*nameless[i])] = rank;
    if (i < kMostNumbered && nameless[i]->pid != 0) {
      told +=
          fmt::format("{}rank {} is pid {}{}{}", told.empty() ? ": " : ", ", rank, nameless[i]->pid,
                      nameless[i]->host.empty() ? "" : " of ", nameless[i]->host);
    }
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto rank = given.find(identity_of(process));
      if (rank != given.end() && process.role == model::Role::kRank && !process.rank) {
        process.rank = rank->second;
      }
    }
  }
  if (!by_nccl.empty()) {
    return;
  }
  job.coverage.warnings.push_back(fmt::format(
      "the dumps do not say which rank a process is; they are numbered in the order of {}{}",
      listed         ? "their siblings in the process table"
      : told.empty() ? "the text"
                     : "their pids",
      told));
}

}  // namespace ddpdoctor::imports
