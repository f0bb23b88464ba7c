// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/raiser_by_elimination.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The ranks of the job's largest group.
model::RankSet members_of_world(const model::JobModel& job) {
  model::RankSet out = model::all_ranks(job);
  for (const model::ProcessGroup& group : job.groups) {
    out = group.ranks.size() > out.size() ? model::RankSet(group.ranks) : out;
  }
  return out;
}

/// The only rank that does not wait in a call; nothing if several do not, or none.
std::optional<model::Rank> only_rank_without_call(const model::JobModel& job) {
  model::RankSet waiting;
  for (const model::CollectiveCall& call : job.collectives) {
    if (!model::is_over(call.state)) {
      waiting.insert(call.rank);
    }
  }
  const model::RankSet others = members_of_world(job).minus(waiting);
  return !waiting.empty() && others.size() == 1 ? std::optional(others.front()) : std::nullopt;
}

/// The log and the line of the first timeout of a watchdog; nothing if several logs have one.
std::optional<LogLine> first_timeout(const std::vector<LogStream>& streams) {
  std::optional<LogLine> out;
  for (const LogStream& stream : streams) {
    for (const LogLine& line : stream) {
      if (!base::contains(line.text, kWatchdogTimeout)) {
        continue;
      }
      if (out && out->log != line.log) {
        return std::nullopt;
      }
      out = !out || line.number < out->number ? line : *out;
    }
  }
  return out;
}

}  // namespace

void name_raiser_by_elimination(const model::JobModel& job, std::vector<Traceback>& all) {
  const auto rank = all.empty() ? std::nullopt : only_rank_without_call(job);
  const auto timeout = rank ? first_timeout(log_streams(job)) : std::nullopt;
  if (!timeout) {
    return;
  }
  std::vector<Traceback*> raised;
  for (Traceback& one : all) {
    const bool before = one.log == timeout->log && one.number < timeout->number;
    if (one.rank || (before && one.place.known() && (one.of_thread || one.of_process))) {
      return;  // labelled, or of a process that may be no rank
    }
    if (before && one.place.known() && !one.ignored && !is_consequence(one)) {
      raised.push_back(&one);
    }
  }
  for (Traceback* const one : raised) {
    if (one->place == raised.front()->place) {
      one->rank = *rank;
      one->by_elimination = true;
    }
  }
}

}  // namespace ddpdoctor::detectors
