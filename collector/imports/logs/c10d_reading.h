// SPDX-License-Identifier: Apache-2.0
// The messages of torch.distributed in one log, before they are combined.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/imports/logs/c10d_text.h"
#include "collector/imports/logs/desync_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

using model::CollectiveCall;
using model::Rank;

/// A rank's line, and the user's line in the traceback above it.
struct Place {
  Rank rank = 0;
  model::CallSite site;
};

/// A group, and a rank in it.
using Idle = std::pair<std::string, Rank>;

/// The timeout whose stack trace is being printed, and the number of its next frame.
struct Traced {
  std::size_t timeout = 0;
  std::int64_t next = 0;
};

struct Reading {
  std::vector<CollectiveCall> timeouts;
  // Group of a watchdog line, by rank and work number.
  std::map<std::pair<Rank, std::int64_t>, std::string> groups;
  std::map<std::string, std::string> names;  // group → name
  // The size of a call's group by its numbers of elements, by rank and work number; 0 if unknown.
  std::map<std::pair<Rank, std::int64_t>, std::int64_t> members;
  std::map<Idle, std::int64_t> idle;      // its last completed work there: others timed out later
  std::map<Idle, std::int64_t> enqueued;  // the newest call that it has enqueued there
  std::map<Idle, std::int64_t> finished;  // the newest call that it has finished there
  std::map<Rank, Traced> traces;          // the stack trace that each rank is printing
  std::optional<Rank> tracing;            // the rank that began the newest
  std::map<Rank, CollectiveCall> mismatched;
  std::map<Rank, std::deque<CollectiveCall>> running;  // announced before they are made
  std::map<std::int64_t, int> mismatched_at;           // votes for the sequence number
  bool mismatch_numbered = false;                      // old versions of torch print no number
  // The innermost line outside torch of the traceback in which a rank reported its mismatch: for
  // ranks that are at one line of the user, but not of a framework.
  std::map<Rank, model::CallSite> within;
  std::map<Rank, std::vector<model::CallSite>>
      paths;                     // all lines of that traceback, outermost first
  std::set<Rank> own;            // ranks that reported their own call
  std::optional<Place> barrier;  // the place of the rank that reported a monitored_barrier
  std::set<Rank> barrier_missing;
  std::set<Rank> lagging;                           // from torch's own report on a desync
  std::map<Rank, model::CallSite> barrier_reached;  // and the user's line, if it is known
  std::optional<Rank> barrier_awaited;              // the rank from which they waited for an answer
  bool barrier_timed_out = false;                   // they waited until the limit
  bool barrier_lost = false;                        // a connection broke before it
  std::set<Rank> elsewhere;                         // timed out in a group that no line names
  DesyncReport desync;
};

/// A line of the stack trace that torch prints of a call that timed out.
void read_trace(std::string_view line, std::optional<Rank> whose, Reading& reading);

/// The calls and group names in these messages.
Told add_calls(Reading& reading, model::JobModel& job);

/// Adds the fact that the log does not number the calls of this group; the model does.
void note_uncounted(const std::string& group, model::JobModel& job);

}  // namespace ddpdoctor::imports
