// SPDX-License-Identifier: Apache-2.0
// Two threads of one process are in collectives of one group: their order differs from rank to
// rank.
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/blocked_call.h"
#include "collector/graph/device_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::concurrent_collectives {
namespace {

struct Pair {
  graph::Standing first;
  graph::Standing second;
  bool group_known = true;  // false: both are assumed to be calls of the default group
};

bool is_collective(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kCollective ||
         standing.activity == graph::Activity::kDdpBackward ||
         standing.activity == graph::Activity::kDdpForward;
}

/// Started by Python's threading. Threads of autograd and NCCL are torch's own.
bool started_in_python(const model::Thread& thread) {
  const model::Frame* outermost = nullptr;
  for (const model::Frame& frame : thread.frames) {
    outermost = frame.language == model::Language::kPython ? &frame : outermost;
  }
  return outermost != nullptr && outermost->function == "_bootstrap" &&
         outermost->file.ends_with("threading.py");
}

/// A record or the arguments on the stack name the group.
bool knows_its_group(const graph::Examination& examination, const graph::Standing& standing) {
  const auto call = graph::call_in_frames(examination.job, standing.thread->frames);
  return standing.call->sequence || (call && !call->group.empty());
}

bool on_two_backends(const graph::Standing& a, const graph::Standing& b) {
  const std::string_view one = graph::backend_in(a.thread->frames);
  const std::string_view other = graph::backend_in(b.thread->frames);
  return !one.empty() && !other.empty() && one != other;
}

// The two threads of a process in collectives of one group.
std::optional<Pair> pair_in(const graph::Examination& examination, const model::Process& process) {
  std::vector<const model::Thread*> callers;
  for (const model::Thread& thread : process.threads) {
    if (model::user_frame(thread) != nullptr || started_in_python(thread)) {
      callers.push_back(&thread);
    }
  }
  if (callers.size() < 2) {
    return std::nullopt;
  }
  std::vector<graph::Standing> found;
  for (const model::Thread* thread : callers) {
    const bool users = model::user_frame(*thread) != nullptr;
    graph::Standing standing =
        graph::standing_of(examination.job, examination.history, process, *thread);
    if (!is_collective(standing)) {
      continue;
    }
    const std::string& group = standing.call->group;
    for (const graph::Standing& other : found) {
      if (other.call->group == group && !group.empty() && !on_two_backends(other, standing)) {
        const bool known = users || (knows_its_group(examination, other) &&
                                     knows_its_group(examination, standing));
        return Pair{.first = other, .second = standing, .group_known = known};
      }
    }
    found.push_back(std::move(standing));
  }
  return std::nullopt;
}

/// If every rank is in both, calls of two groups would complete: no rank is missing in either.
bool is_told_by_all(const graph::Examination& examination, const model::RankSet& paired) {
  return paired.size() > 1 && paired.size() == examination.standings.size();
}

Findings detect(const graph::Examination& examination) {
  if (!may_hang(examination)) {
    return {};
  }
  Finding finding;
  std::string group;
  bool group_known = true;
  for (const graph::Standing& standing : examination.standings) {
    const auto pair =
        standing.process == nullptr ? std::nullopt : pair_in(examination, *standing.process);
    if (!pair) {
      continue;
    }
    group = pair->first.call->group;
    group_known = group_known && pair->group_known;
    finding.culprits.insert(standing.rank);
    for (const graph::Standing* one : {&pair->second, &pair->first}) {
      finding.evidence.push_back({.rank = standing.rank,
                                  .text = fmt::format("{} {}", thread_name(*one->thread),
                                                      whereabouts(examination.job, *one))});
      if (finding.locations.size() < 4 && one->user.known()) {
        finding.locations.push_back(
            location(*one, fmt::format("{} of rank {}", thread_name(*one->thread), standing.rank)));
      }
    }
  }
  if (finding.culprits.empty() ||
      (!group_known && !is_told_by_all(examination, finding.culprits))) {
    return {};
  }
  finding.kind = "concurrent-collectives";
  const bool stuck = examination.still() || examination.job.ended;
  finding.confidence = confidence_of((stuck ? 1 : 0) + (group_known ? 1 : 0));
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format("two threads of {} are in collectives of {} at the same time",
                                said(finding.culprits), group_name(examination.job, group));
  finding.fix =
      "Create a separate process group for the second thread (dist.new_group() on every rank) and "
      "pass it as group=.";
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: after hours the job hangs; it often has an asynchronous checkpoint, a logger thread or an executor.

Why: collectives of one group are paired by the order in which each process calls them. Two threads race, and the order differs
between ranks: rank A is in the barrier of the checkpoint while rank B is in the all_reduce of training.

How ddpdoctor knows: two threads of one process are in collectives of the same group. If the stacks do not name the groups: every rank
is in both calls, so no rank is missing from either, and neither completes.

Fix: use one group for each thread.

    +    saving = dist.new_group(backend="gloo")      # on every rank, once
    -    thread.submit(lambda: dist.barrier())
    +    thread.submit(lambda: dist.barrier(group=saving))
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "concurrent-collectives",
                           .title = "Two threads of a process use one group",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kMechanism};

}  // namespace ddpdoctor::detectors::concurrent_collectives
