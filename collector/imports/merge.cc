// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/merge.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "collector/imports/merge_parts.h"
#include "collector/imports/second_look.h"
#include "collector/model/host_pids.h"
#include "collector/model/seen_elsewhere.h"

namespace ddpdoctor::imports {

namespace {

void warn_of_another_job(const model::RankSet& ranks, model::JobModel& whole) {
  if (!ranks.empty()) {
    whole.coverage.warnings.push_back(
        fmt::format("{} {} another process in each of the files: are they of one job?",
                    ranks.said(), ranks.size() == 1 ? "is" : "are"));
  }
}

/// A log does not show whether the job makes progress or has ended; another capture does.
bool is_mere_log(const model::JobModel& job) {
  return !job.logs.empty() && job.observations.empty() && job.collectives.empty();
}

model::Progress merged(model::Progress a, model::Progress b) {
  if (a == model::Progress::kMoving || b == model::Progress::kMoving) {
    return model::Progress::kMoving;
  }
  return a == b ? a : model::Progress::kUnknown;
}

}  // namespace

void merge(model::JobModel& whole, model::JobModel part) {
  model::name_host_of_facts(whole);
  model::name_host_of_facts(part);
  if (show_one_process(whole, part)) {
    const std::optional<int> size = std::max(whole.world_size, part.world_size);
    const model::RankSet unseen =
        whole.coverage.unobserved_ranks.united(part.coverage.unobserved_ranks);
    join_looks(whole, std::move(part));
    whole.world_size = size;
    whole.coverage.unobserved_ranks = unseen;
    model::forget_seen_elsewhere(whole);
    return;
  }
  const model::RankSet others = ranks_of_other_processes(whole, part);
  const bool only_part_looked = is_mere_log(whole) && !is_mere_log(part);
  const bool both_looked = !is_mere_log(whole) && !is_mere_log(part);
  const model::RankSet answered =
      model::ranks_answered_for(whole).united(model::ranks_answered_for(part));
  whole.world_size = std::max(whole.world_size, part.world_size);
  if (whole.command.empty()) {
    whole.command = std::move(part.command);
  }
  merge_hosts(whole.hosts, std::move(part.hosts));
  if (!whole.launcher_pid) {
    whole.launcher_pid = part.launcher_pid;
  }
  merge_groups(whole.groups, std::move(part.groups));
  merge_observations(whole.observations, std::move(part.observations));
  append(whole.collectives, std::move(part.collectives));
  append(whole.facts, std::move(part.facts));
  append(whole.logs, std::move(part.logs));
  merge_sources(whole.sources, std::move(part.sources));
  merge_sources(whole.framework_sources, std::move(part.framework_sources));
  whole.coverage.unobserved_ranks =
      whole.coverage.unobserved_ranks.united(part.coverage.unobserved_ranks);
  merge_coverage(whole.coverage, std::move(part.coverage));
  model::forget_seen_elsewhere(whole, answered);
  warn_of_another_job(others, whole);
  if (both_looked) {
    whole.progress = merged(whole.progress, part.progress);
    whole.ended = whole.ended && part.ended;
    whole.history_complete = whole.history_complete && part.history_complete;
  } else if (only_part_looked) {
    whole.progress = part.progress;
    whole.ended = part.ended;
    whole.history_complete = part.history_complete;
    whole.seconds_without_progress = part.seconds_without_progress;
  }
  if (part.seconds_without_progress && whole.seconds_without_progress) {
    whole.seconds_without_progress =
        std::min(*whole.seconds_without_progress, *part.seconds_without_progress);
  }
}

}  // namespace ddpdoctor::imports
