// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/monitored_barrier.h"

#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::int64_t kMostRank = 1'000'000;

/// "Rank 2 failed to pass monitoredBarrier", "Ranks 1, 2 failed to pass monitoredBarrier".
void read_failed(std::string_view line, const Place& place, Reading& reading) {
  const std::size_t end = line.find(" failed to pass monitoredBarrier");
  const std::size_t start = line.rfind("Rank", end);
  if (end == std::string_view::npos || start == std::string_view::npos) {
    return;
  }
  std::string_view ranks = line.substr(start + 4, end - start - 4);
  take_prefix(ranks, "s");
  const std::vector<Rank> missing = model::listed_ranks(ranks).ranks;
  reading.barrier_missing.insert(missing.begin(), missing.end());
  reading.barrier = place;
}

/// "Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv
/// from rank 0".
void read_reached(std::string_view line, const Place& place, Reading& reading) {
  const auto reached = number_behind(line, "Rank ", kMostRank);
  const auto awaited = number_behind(line, "send/recv from rank ", kMostRank);
  if (reached) {
    model::CallSite& site = reading.barrier_reached[static_cast<Rank>(*reached)];
    site = site.known() ? site : place.site;
  }
  if (awaited) {
    reading.barrier_awaited = static_cast<Rank>(*awaited);
  }
}

/// One rank's call, or a rank that made none: monitored barriers are not numbered, and 2 stands for
/// this one.
CollectiveCall call_of(Rank rank, bool reached, const model::CallSite& site) {
  CollectiveCall call;
  call.rank = rank;
  call.group = "0";
  call.sequence = reached ? 2 : 1;
  if (reached) {
    call.operation = "monitored_barrier";
    call.state = model::CallState::kStarted;
    call.call_site = site;
  }
  return call;
}

}  // namespace

void read_monitored_barrier(std::string_view line, const Place& place, Reading& reading) {
  if (line.find("failed to pass monitoredBarrier") != std::string_view::npos) {
    read_failed(line, place, reading);
  } else if (line.find("successfully reached monitoredBarrier") != std::string_view::npos) {
    read_reached(line, place, reading);
  } else if (reading.barrier_awaited && line.find("Timed out waiting ") != std::string_view::npos) {
    reading.barrier_timed_out = true;
  } else if (reading.barrier_awaited && line.find("Connection ") != std::string_view::npos) {
    reading.barrier_lost = true;
  }
}

void add_monitored_barrier(const Reading& reading, model::JobModel& job) {
  std::set<Rank> missing = reading.barrier_missing;
  // Rank 0 may name ranks that it has not heard of; if it never came itself, the others name it. It
  // would have written to the log in which several of them do.
  const bool silent = reading.barrier_reached.size() > 1 && !reading.barrier_lost;
  if (!reading.barrier && reading.barrier_awaited && (reading.barrier_timed_out || silent)) {
    missing.insert(*reading.barrier_awaited);
  }
  if (missing.empty()) {
    return;
  }
  for (const Rank rank : missing) {
    if (!reading.barrier || rank != reading.barrier->rank) {
      job.collectives.push_back(call_of(rank, false, {}));
    }
  }
  for (const auto& [rank, site] : reading.barrier_reached) {
    if ((!reading.barrier || rank != reading.barrier->rank) && !missing.contains(rank)) {
      job.collectives.push_back(call_of(rank, true, reading.barrier ? model::CallSite{} : site));
    }
  }
  note_uncounted("0", job);
  if (reading.barrier) {
    job.collectives.push_back(call_of(reading.barrier->rank, true, reading.barrier->site));
  }
}

}  // namespace ddpdoctor::imports
