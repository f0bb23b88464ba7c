// SPDX-License-Identifier: Apache-2.0
#include "collector/model/gpu_calls.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

/// The agent polls fifty times a second; a busy machine or the first CUPTI window delays it.
constexpr double kSilence = 5;  // seconds

/// A stopped or ended process cannot poll.
bool could_ask(const Process* process) {
  return process != nullptr && !process->exit &&
         std::string_view("TtZX").find(process->state) == std::string_view::npos;
}

}  // namespace

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

RankSet with_silent_driver(const JobModel& job, const std::vector<sources::Recording>& recordings) {
  RankSet ranks;
  if (job.ended || job.observations.empty()) {
    return ranks;
  }
  const double looked = job.observations.front().time;  // recordings are read at about this time
  for (const sources::Recording& recording : recordings) {
    if (recording.rank && recording.driver_answered && !recording.exit &&
        looked - *recording.driver_answered > kSilence && could_ask(process(job, recording.pid))) {
      ranks.insert(*recording.rank);
    }
  }
  return ranks;
}

std::vector<std::string> warnings_of_gpus(const JobModel& job,
                                          const std::vector<sources::Recording>& recordings) {
  std::vector<std::string> sentences;
  if (const RankSet unseen = with_unseen_nccl(job, recordings); !unseen.empty()) {
    sentences.push_back(
        fmt::format("{}: NCCL runs there and none of its calls were seen; it is linked statically, "
                    "with its names hidden: set "
                    "NCCL_PROFILER_PLUGIN to libddpdoctor_agent.so",
                    unseen.said()));
  }
  if (const RankSet silent = with_silent_driver(job, recordings); !silent.empty()) {
    sentences.push_back(
        fmt::format("{}: the GPU's driver does not answer any more: how far calls have run since "
                    "then is not known (see dmesg and nvidia-smi on that machine)",
                    silent.said()));
  }
  return sentences;
}

std::optional<bool> begun_on_gpu(const sources::RecordedCall& recorded) {
  if (!recorded.on_stream || recorded.in_progress ||
      recorded.state == sources::RecordedState::kUnknown) {
    return std::nullopt;
  }
  return recorded.state != sources::RecordedState::kEnqueued;
}

std::vector<bool> queued_behind_others(const sources::Recording& recording) {
  using sources::RecordedState;
  std::vector<bool> hidden(recording.calls.size(), false);
  if (recording.exit && recording.exit->kind == "_exit") {
    return hidden;  // it left at once; completions on its streams since then were not recorded
  }
  std::map<std::uint64_t, std::size_t> head;  // stream → group of its first unfinished call
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
