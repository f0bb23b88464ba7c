// SPDX-License-Identifier: Apache-2.0
// What the messages of torch.distributed in one log say, before it is known how they fit together.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/imports/logs/c10d_text.h"
#include "collector/imports/logs/desync_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

using model::CollectiveCall;
using model::Rank;

/// A line of a rank, and the user's line in the traceback above it.
struct Place {
  Rank rank = 0;
  model::CallSite site;
};

/// A group, and a rank in it.
using Idle = std::pair<std::string, Rank>;

struct Reading {
  std::vector<CollectiveCall> timeouts;
  std::map<std::pair<Rank, std::int64_t>, std::string> groups;  // of watchdog lines: rank, work
  std::map<std::string, std::string> names;                     // of groups
  std::map<Idle, std::int64_t> idle;      // its last work there, finished: others timed out later
  std::map<Idle, std::int64_t> enqueued;  // the newest call that it has begun there
  std::optional<std::size_t> traced;      // the timeout whose stack trace is being printed
  std::map<Rank, CollectiveCall> mismatched;
  std::map<Rank, std::deque<CollectiveCall>> running;  // told before they are made
  std::map<std::int64_t, int> mismatched_at;           // votes for the sequence number
  std::set<Rank> own;                                  // told of their own call
  std::optional<Place> barrier;                        // who watched a monitored_barrier
  std::set<Rank> barrier_missing;
  std::set<Rank> lagging;  // as torch's own report on a desync says
  std::set<Rank> barrier_reached;
  std::set<Rank> elsewhere;  // timed out in a group that no line names
  DesyncReport desync;
};

/// The calls that these messages tell of, and names of their groups.
Told add_calls(Reading& reading, model::JobModel& job);

}  // namespace ddpdoctor::imports
