// SPDX-License-Identifier: Apache-2.0
// Two threads of one process are in collectives of one group: their order differs from rank to
// rank.
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

struct Pair {
  graph::Standing first;
  graph::Standing second;
};

bool is_collective(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kCollective ||
         standing.activity == graph::Activity::kDdpBackward ||
         standing.activity == graph::Activity::kDdpForward;
}

// The two threads of a process that are in collectives of one group; a thread of torch itself has
// no user frame.
std::optional<Pair> pair_in(const graph::Examination& examination, const model::Process& process) {
  std::vector<graph::Standing> found;
  for (const model::Thread& thread : process.threads) {
    if (model::user_frame(thread) == nullptr) {
      continue;
    }
    graph::Standing standing =
        graph::standing_of(examination.job, examination.history, process, thread);
    if (!is_collective(standing)) {
      continue;
    }
    const std::string& group = standing.call->group;
    for (const graph::Standing& other : found) {
      if (other.call->group == group && !group.empty()) {
        return Pair{.first = other, .second = standing};
      }
    }
    found.push_back(std::move(standing));
  }
  return std::nullopt;
}

Findings detect(const graph::Examination& examination) {
  if (!may_hang(examination)) {
    return {};
  }
  Finding finding;
  std::string group;
  for (const graph::Standing& standing : examination.standings) {
    const auto pair =
        standing.process == nullptr ? std::nullopt : pair_in(examination, *standing.process);
    if (!pair) {
      continue;
    }
    group = pair->first.call->group;
    finding.culprits.insert(standing.rank);
    for (const graph::Standing* one : {&pair->second, &pair->first}) {
      finding.evidence.push_back(
          {.rank = standing.rank,
           .text = fmt::format("{} of rank {} {}", thread_name(*one->thread), standing.rank,
                               whereabouts(examination.job, *one))});
      if (finding.locations.size() < 4) {
        finding.locations.push_back(
            location(*one, fmt::format("{} of rank {}", thread_name(*one->thread), standing.rank)));
      }
    }
  }
  if (finding.culprits.empty()) {
    return {};
  }
  finding.kind = "concurrent-collectives";
  finding.confidence =
      examination.still() || examination.job.ended ? Confidence::kCertain : Confidence::kLikely;
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format("two threads of {} are in collectives of {} at the same time",
                                said(finding.culprits), group_name(examination.job, group));
  finding.fix =
      "Give the second thread a process group of its own (dist.new_group() on every rank, passed "
      "as group=).";
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: after hours the job stands still, often with an asynchronous checkpoint, a logger thread or an executor around.

Why: collectives of one group are paired by the order in which each process calls them. Two threads race, and on one rank the other thread
wins: rank A is in the barrier of the checkpoint while rank B is in the all_reduce of training.

How it is recognised: two threads of one process stand in collectives of the same group.

The fix: a group for each thread.

    +    saving = dist.new_group(backend="gloo")      # on every rank, once
    -    thread.submit(lambda: dist.barrier())
    +    thread.submit(lambda: dist.barrier(group=saving))
)";

}  // namespace

extern const Detector concurrent_collectives;
const Detector concurrent_collectives = {.kind = "concurrent-collectives",
                                         .title = "Two threads of a process use one group",
                                         .explanation = kExplanation,
                                         .detect = detect,
                                         .specificity = kMechanism};

}  // namespace ddpdoctor::detectors
