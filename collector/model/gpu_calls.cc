// SPDX-License-Identifier: Apache-2.0
#include "collector/model/gpu_calls.h"

#include <algorithm>
#include <map>

#include "collector/model/questions.h"

namespace ddpdoctor::model {

bool is_communicator(const sources::RecordedGroup& group) {
  return group.backend == "nccl" || group.backend == "rccl";
}

bool is_of_nccl(const JobModel& job, const CollectiveCall& call) {
  return std::any_of(job.groups.begin(), job.groups.end(), [&](const ProcessGroup& group) {
    return group.id == call.group && group.backend.find("nccl") != std::string::npos;
  });
}

bool told_above_nccl(const JobModel& job, const RankSet& ranks) {
  RankSet told;
  for (const CollectiveCall& call : job.collectives) {
    if (!told.contains(call.rank) && is_of_nccl(job, call)) {
      told.insert(call.rank);
    }
  }
  return !ranks.empty() && ranks.minus(told).empty();
}

RankSet with_unseen_nccl(const JobModel& job, const std::vector<sources::Recording>& recordings) {
  RankSet ranks;
  for (const sources::Recording& recording : recordings) {
    const Process* const known = process(job, recording.pid);
    if (!recording.rank || known == nullptr ||
        std::any_of(recording.groups.begin(), recording.groups.end(), is_communicator)) {
      continue;
    }
    if (std::any_of(known->threads.begin(), known->threads.end(),
                    [](const Thread& thread) { return thread.name.starts_with("NCCL "); })) {
      ranks.insert(*recording.rank);
    }
  }
  return ranks;
}

std::vector<bool> queued_behind_others(const sources::Recording& recording) {
  using sources::RecordedState;
  std::vector<bool> hidden(recording.calls.size(), false);
  if (recording.exit && recording.exit->kind == "_exit") {
    return hidden;  // it left at once: what its streams had finished by then was not noted
  }
  std::map<std::uint64_t, std::size_t> head;  // stream: group of its first unfinished call
  for (std::size_t i = 0; i < recording.calls.size(); ++i) {
    const sources::RecordedCall& call = recording.calls[i];
    const bool unfinished =
        call.state == RecordedState::kEnqueued || call.state == RecordedState::kStarted;
    if (!call.on_stream || !unfinished) {
      continue;
    }
    const auto [first, is_first] = head.try_emplace(call.stream, call.group);
    hidden[i] = !is_first && first->second != call.group && !call.grouped &&
                call.state == RecordedState::kEnqueued;
  }
  return hidden;
}

}  // namespace ddpdoctor::model
