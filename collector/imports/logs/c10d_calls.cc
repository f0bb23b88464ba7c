// SPDX-License-Identifier: Apache-2.0
// Builds calls of the job from the messages of one log: group, sequence number, ranks behind.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "collector/imports/logs/c10d_reading.h"
#include "collector/imports/logs/monitored_barrier.h"
#include "collector/model/call_frames.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

/// Sequence numbers in one group are close to each other: a rank so far behind refers to another
/// group.
constexpr std::int64_t kMostApart = 1000;
constexpr std::size_t kMostBegun = 200'000;  // calls of one log

/// Old messages name no group. A watchdog gives up at its first call, so a rank with several
/// timeouts has several groups: of its numbers, the one most ranks have is kept.
void give_groups(Reading& reading) {
  std::map<std::int64_t, std::set<Rank>> votes;
  std::map<Rank, std::set<std::int64_t>> numbers;
  for (CollectiveCall& call : reading.timeouts) {
    const auto told = reading.groups.find({call.rank, call.sequence});
    if (call.group.empty() && told != reading.groups.end()) {
      call.group = told->second;
    } else if (call.group.empty()) {
      votes[call.sequence].insert(call.rank);
      numbers[call.rank].insert(call.sequence);
    }
  }
  std::erase_if(reading.timeouts, [&](const CollectiveCall& call) {
    const auto own = call.group.empty() ? numbers.find(call.rank) : numbers.end();
    return own != numbers.end() && own->second.size() > 1 &&
           (votes[call.sequence].size() < 2 ||
            std::any_of(own->second.begin(), own->second.end(), [&](std::int64_t other) {
              return votes[other].size() > votes[call.sequence].size();
            }));
  });
  for (CollectiveCall& call : reading.timeouts) {
    call.group = call.group.empty() ? "0" : call.group;
  }
  for (const auto& [rank, own] : numbers) {
    const bool placed =
        std::any_of(reading.timeouts.begin(), reading.timeouts.end(),
                    [rank = rank](const CollectiveCall& call) { return call.rank == rank; });
    if (!placed) {
      reading.elsewhere.insert(rank);
    }
  }
}

/// torch's own report has more information than the timeouts of the world: it includes ranks that
/// did not time out.
void prefer_desync(Reading& reading) {
  const auto of_author = [&](const CollectiveCall& call) {
    return call.rank == reading.desync.author();
  };
  const auto one = std::find_if(reading.timeouts.begin(), reading.timeouts.end(), of_author);
  auto calls = reading.desync.calls();
  const auto world = [&reading](const std::string& group) {
    return group == "0" || reading.names[group] == "default_pg";
  };
  if (calls.size() < 2 || (one != reading.timeouts.end() && !world(one->group))) {
    return;
  }
  std::erase_if(reading.timeouts, [&](const CollectiveCall& call) { return world(call.group); });
  reading.timeouts.insert(reading.timeouts.end(), calls.begin(), calls.end());
}

/// The size of the world, if the calls in which its ranks timed out agree on it; 0 otherwise.
std::int64_t size_of_world(const Reading& reading, const model::JobModel& job) {
  std::set<std::int64_t> sizes;
  Rank last = 0;
  for (const CollectiveCall& call : job.collectives) {
    const auto name = reading.names.find(call.group);
    const bool world = name != reading.names.end() && name->second == "default_pg";
    const auto told = reading.members.find({call.rank, call.sequence});
    last = std::max(last, call.rank);
    if (world && told != reading.members.end() && told->second > 0) {
      sizes.insert(told->second);
    }
  }
  return sizes.size() == 1 && *sizes.begin() > last ? *sizes.begin() : 0;
}

/// For groups other than the world, only ranks that mention the group are known members.
void add_groups(Reading& reading, model::JobModel& job) {
  std::map<std::string, std::set<Rank>> speakers;
  for (const CollectiveCall& call : job.collectives) {
    speakers[call.group].insert(call.rank);
  }
  for (const auto& [id, ranks] : speakers) {
    const std::string& name = reading.names[id];
    if (id == "0" || name == "default_pg") {
      continue;
    }
    job.groups.push_back(
        {.id = id, .name = name, .backend = "nccl", .ranks = {ranks.begin(), ranks.end()}});
  }
  const std::int64_t size = size_of_world(reading, job);
  for (const auto& [id, name] : reading.names) {
    if (!name.empty() && (id == "0" || name == "default_pg" || !speakers.contains(id))) {
      std::vector<Rank> ranks(name == "default_pg" ? static_cast<std::size_t>(size) : 0);
      std::iota(ranks.begin(), ranks.end(), 0);
      job.groups.push_back({.id = id, .name = name, .backend = "nccl", .ranks = std::move(ranks)});
    }
  }
}

/// A rank in an older call may already have enqueued those in which others wait: then it is not
/// behind them.
void add_enqueued(const Reading& reading, model::JobModel& job) {
  std::map<std::string, std::set<std::int64_t>> awaited;
  std::map<Idle, std::int64_t> newest;
  for (const CollectiveCall& call : job.collectives) {
    awaited[call.group].insert(call.sequence);
    std::int64_t& own = newest[{call.group, call.rank}];
    own = std::max(own, call.sequence);
  }
  std::size_t added = 0;
  for (const auto& [whose, last] : newest) {
    const auto begun = reading.enqueued.find(whose);
    const auto& sequences = awaited[whose.first];
    for (auto at = sequences.upper_bound(last);
         begun != reading.enqueued.end() && at != sequences.end() && *at <= begun->second &&
         ++added <= kMostBegun;
         ++at) {
      CollectiveCall other;  // the operation is unknown
      other.rank = whose.second;
      other.group = whose.first;
      other.sequence = *at;
      other.state = model::CallState::kEnqueued;
      job.collectives.push_back(std::move(other));
    }
  }
}

/// A rank may have finished a call in which others timed out.
void add_finished(const Reading& reading, model::JobModel& job) {
  std::map<std::string, std::set<std::int64_t>> awaited;
  std::set<std::pair<Idle, std::int64_t>> known;
  for (const CollectiveCall& call : job.collectives) {
    known.insert({{call.group, call.rank}, call.sequence});
    if (call.state != model::CallState::kCompleted) {
      awaited[call.group].insert(call.sequence);
    }
  }
  std::size_t added = 0;
  for (const auto& [whose, last] : reading.finished) {
    const auto group = awaited.find(whose.first);
    if (group == awaited.end()) {
      continue;
    }
    for (const std::int64_t sequence : group->second) {
      const bool finished = sequence <= last && last - sequence <= kMostApart;
      if (finished && !known.contains({whose, sequence}) && ++added <= kMostBegun) {
        CollectiveCall done;  // the operation is unknown
        done.rank = whose.second;
        done.group = whose.first;
        done.sequence = sequence;
        done.state = model::CallState::kCompleted;
        job.collectives.push_back(std::move(done));
      }
    }
  }
}

/// A rank that began the call in which others timed out is in it, too, even if its own watchdog
/// wrote nothing.
void add_begun(const Reading& reading, const std::map<std::string, std::int64_t>& newest,
               model::JobModel& job) {
  std::set<Idle> known;
  for (const CollectiveCall& call : job.collectives) {
    known.insert({call.group, call.rank});
  }
  for (const auto& [whose, begun] : reading.enqueued) {
    const auto others = newest.find(whose.first);
    if (others != newest.end() && begun >= others->second && begun - others->second <= kMostApart &&
        !known.contains(whose)) {
      CollectiveCall call;  // the operation is unknown
      call.rank = whose.second;
      call.group = whose.first;
      call.sequence = others->second;
      call.state = model::CallState::kEnqueued;
      job.collectives.push_back(std::move(call));
    }
  }
}

void add_timeouts(Reading& reading, model::JobModel& job) {
  give_groups(reading);
  prefer_desync(reading);
  std::map<std::string, std::int64_t> newest;
  for (const CollectiveCall& call : reading.timeouts) {
    newest[call.group] = std::max(newest[call.group], call.sequence);
  }
  for (CollectiveCall& call : reading.timeouts) {
    if (newest[call.group] - call.sequence <= kMostApart) {
      job.collectives.push_back(std::move(call));
    } else {
      reading.elsewhere.insert(call.rank);
    }
  }
  for (const Rank rank : newest.empty() ? std::set<Rank>() : reading.lagging) {
    reading.idle.try_emplace({newest.begin()->first, rank}, newest.begin()->second - 1);
  }
  for (const auto& [whose, last] : reading.idle) {
    const std::string& group = whose.first;  // clang 14 captures no structured bindings
    const Rank rank = whose.second;
    const bool also_timed_out = std::any_of(
        job.collectives.begin(), job.collectives.end(),
        [&](const CollectiveCall& call) { return call.rank == rank && call.group == group; });
    const auto others = newest.find(group);
    if (!also_timed_out && others != newest.end() && last < others->second &&
        others->second - last <= kMostApart) {
      CollectiveCall done;
      done.rank = rank;
      done.group = group;
      done.sequence = last;
      done.state = model::CallState::kCompleted;
      job.collectives.push_back(std::move(done));
    }
  }
  add_begun(reading, newest, job);
  add_enqueued(reading, job);
  add_finished(reading, job);
  for (const CollectiveCall& call : job.collectives) {
    reading.elsewhere.erase(call.rank);
  }
  for (const Rank rank : reading.elsewhere) {
    job.coverage.unobserved_ranks.insert(rank);
  }
  add_groups(reading, job);
}

/// Where all ranks are at one line of the user (Trainer.train()), the framework's lines show where
/// they differ.
void prefer_framework_lines(Reading& reading) {
  std::set<model::CallSite> users;
  std::set<model::CallSite> inner;
  for (const auto& [rank, call] : reading.mismatched) {
    if (call.call_site.known()) {
      users.insert(call.call_site);
      inner.insert(reading.within[rank]);
    }
  }
  const bool known = std::all_of(inner.begin(), inner.end(),
                                 [](const model::CallSite& site) { return site.known(); });
  if (users.size() != 1 || inner.size() < 2 || !known) {
    return;
  }
  for (auto& [rank, call] : reading.mismatched) {
    call.call_site = call.call_site.known() ? reading.within[rank] : call.call_site;
  }
}

void add_mismatch(Reading& reading, model::JobModel& job) {
  if (reading.mismatched.empty()) {
    return;
  }
  prefer_framework_lines(reading);
  const auto agreed =
      std::max_element(reading.mismatched_at.begin(), reading.mismatched_at.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  // The first number may have been 0.
  const std::int64_t number = std::max<std::int64_t>(agreed->first, 1);
  for (auto& [rank, call] : reading.mismatched) {
    if (call.sequence != agreed->first && reading.mismatch_numbered) {
      const std::string own =
          call.sequence > 0 ? fmt::format("rank {} counted its call as #{}", rank, call.sequence)
                            : fmt::format("torch printed 0 as the number of rank {}'s call", rank);
      job.coverage.warnings.push_back(
          fmt::format("{}: it is reported as #{}, the call that it was matched with", own, number));
    }
    // These calls were matched with each other: whatever number each rank counted, they are one
    // call.
    call.sequence = number;
    call.group = "0";
    if (const auto path = reading.paths.find(rank); path != reading.paths.end()) {
      std::reverse(path->second.begin(), path->second.end());
      job.facts.push_back(model::frames_fact(rank, call.group, number, path->second));
    }
    job.collectives.push_back(std::move(call));
  }
  if (!reading.mismatch_numbered) {
    note_uncounted("0", job);
  }
}

/// The call that every rank was about to make; nothing is known about ranks that the log does not
/// name.
void add_running(Reading& reading, model::JobModel& job) {
  if (reading.running.size() < 2) {
    return;
  }
  std::int64_t first = 0;  // first number that the lines of every rank still contain
  for (const auto& [rank, calls] : reading.running) {
    first = std::max(first, calls.front().sequence);
  }
  for (auto& [rank, calls] : reading.running) {
    for (CollectiveCall& call : calls) {
      if (call.sequence >= first || &call == &calls.back()) {
        job.collectives.push_back(std::move(call));
      }
    }
  }
}

}  // namespace

void note_uncounted(const std::string& group, model::JobModel& job) {
  job.facts.push_back({.rank = {},
                       .pid = {},
                       .kind = std::string(model::kUncountedCalls),
                       .fields = {{"group", group}}});
}

Told add_calls(Reading& reading, model::JobModel& job) {
  const std::size_t before = job.collectives.size();
  add_timeouts(reading, job);
  if (job.collectives.size() > before) {
    return Told::kTimeouts;
  }
  add_mismatch(reading, job);
  if (job.collectives.size() > before) {
    return Told::kMismatch;
  }
  add_monitored_barrier(reading, job);
  if (job.collectives.size() > before) {
    return Told::kBarrier;
  }
  add_running(reading, job);
  return Told::kNothing;
}

}  // namespace ddpdoctor::imports
