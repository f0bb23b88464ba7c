// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/roll_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;
using model::RankSet;

constexpr std::int64_t kHighestRank = model::kMaxWorldSize - 1;
constexpr std::size_t kLongestRead = 4096;
constexpr std::size_t kLongestMessage = 240;

/// One barrier, as the messages of its members tell it.
struct Barrier {
  RankSet came;
  RankSet absent;  // named by a message
  std::optional<std::int64_t> world;
  std::int64_t counted = 0;  // members that had come
  std::string line;          // the newest that waits
  bool over = false;
  bool first = false;
};

void quote(std::string_view line, Barrier& barrier) {
  barrier.line = base::elide(base::printable(base::trim(line)), kLongestMessage);
}

/// torch numbers the barriers of a job: the first one ends init_process_group, each later one
/// new_group.
class StoreBarriers {
 public:
  void read(std::string_view line) {
    const auto number = number_behind(line, "store_based_barrier_key:", kHighestRank);
    if (!number) {
      return;
    }
    Barrier& barrier = barriers_[*number];
    barrier.first = *number == 1;
    barrier.over = barrier.over || line.find("Completed ") != line.npos;
    auto rank = number_behind(line, "rank: ", kHighestRank);
    rank = rank ? rank : number_behind(line, "Rank ", kHighestRank);
    if (rank) {
      barrier.came.insert(static_cast<Rank>(*rank));
    }
    if (const auto world = number_behind(line, "world_size=", kHighestRank)) {
      auto count = number_behind(line, "worker_count=", kHighestRank);
      count = count ? count : number_behind(line, "num_workers_joined=", kHighestRank);
      barrier.world = world;
      barrier.counted = std::max(barrier.counted, count.value_or(0));
      quote(line, barrier);
    }
  }

  /// The newest barrier, if each member that reached it wrote so.
  [[nodiscard]] std::optional<std::pair<std::string, Barrier>> open() const {
    if (barriers_.empty()) {
      return std::nullopt;
    }
    auto [number, barrier] = *barriers_.rbegin();
    const bool all_spoke = std::cmp_greater_equal(barrier.came.size(), barrier.counted);
    if (barrier.over || barrier.came.empty() || !barrier.world || !all_spoke ||
        barrier.came.values().back() >= *barrier.world) {
      return std::nullopt;
    }
    for (Rank rank = 0; rank < *barrier.world; ++rank) {
      if (!barrier.came.contains(rank)) {
        barrier.absent.insert(rank);
      }
    }
    return std::pair(barrier.first ? std::string("init_process_group")
                                   : fmt::format("new_group (barrier {} of the store)", number),
                     std::move(barrier));
  }

 private:
  std::map<std::int64_t, Barrier> barriers_;
};

/// JAX waits there for all processes of the job before it begins.
bool is_first_of_jax(std::string_view barrier) {
  return barrier == "PjRT_Client_Connect" ||
         barrier.starts_with(
             "[Init]Wait_for_all_tasks_to_register");  // newer ones count them: "::0"
}

/// "Barrier timed out. Barrier_id: NAME. Timed out task names:", "Barrier timed out. Id: NAME. …
/// # of tasks that reached the barrier: 6/8. … Some timed out task names:", then a task in each
/// line.
class ServiceBarriers {
 public:
  void read(std::string_view line) {
    constexpr std::string_view kNames = "imed out task names:";
    const std::size_t said = line.find("Barrier timed out.");
    if (said != line.npos) {
      auto name = between(line.substr(said), "Barrier_id: ", ". ");
      name = name ? name : between(line.substr(said), "Id: ", ". ");
      reading_ = name ? base::elide(base::printable(*name), 64) : std::string();
      if (name) {
        Barrier& barrier = barriers_[reading_];
        barrier.first = is_first_of_jax(reading_);
        if (barrier.line.empty()) {  // the service's own message repeats it in one line
          quote(line.substr(said), barrier);
        }
      }
    }
    const std::size_t names = line.find(kNames);
    if (names != line.npos) {
      in_list_ = !reading_.empty();
      read_tasks(line.substr(names));
    } else if (in_list_ && base::trim(line).starts_with("/job:")) {
      read_tasks(line);
    } else {
      in_list_ = false;
    }
  }

  [[nodiscard]] const std::map<std::string, Barrier>& all() const {
    return barriers_;
  }

 private:
  /// "/job:jax_worker/replica:0/task:3".
  void read_tasks(std::string_view line) {
    constexpr std::string_view kTask = "/task:";
    for (std::size_t at = line.find(kTask); at != line.npos && in_list_;
         at = line.find(kTask, at + 1)) {
      if (const auto rank = number_behind(line.substr(at), kTask, kHighestRank)) {
        barriers_[reading_].absent.insert(static_cast<Rank>(*rank));
      }
    }
  }

  std::map<std::string, Barrier> barriers_;
  std::string reading_;
  bool in_list_ = false;
};

void add(const std::string& name, const Barrier& barrier, model::JobModel& job) {
  model::Fact fact{.rank = {}, .pid = {}, .kind = std::string(model::kRollCall), .fields = {}};
  fact.fields["barrier"] = name;
  fact.fields["line"] = barrier.line;
  fact.fields["absent"] = barrier.absent.ranges();
  fact.fields["came"] = barrier.came.ranges();
  fact.fields["first"] = barrier.first;
  job.facts.push_back(std::move(fact));
}

}  // namespace

void read_roll_calls(std::string_view log, model::JobModel& job) {
  StoreBarriers of_store;
  ServiceBarriers of_service;
  for (const std::string_view raw : base::split(log, '\n')) {
    of_store.read(raw.substr(0, kLongestRead));  // "Rank 2: Completed …" has the rank of its author
    of_service.read(model::read_log_line(raw.substr(0, kLongestRead)).text);
  }
  if (const auto open = of_store.open(); open && !open->second.absent.empty()) {
    add(open->first, open->second, job);
  }
  for (const auto& [name, barrier] : of_service.all()) {
    if (!barrier.absent.empty()) {
      add(name, barrier, job);
    }
  }
}

}  // namespace ddpdoctor::imports
