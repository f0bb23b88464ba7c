// SPDX-License-Identifier: Apache-2.0
// Every rank launched the same collective and none completes: no rank is missing. The cause is the
// transport, the hardware or another stream, not the user's control flow.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/compared.h"
#include "collector/detectors/evidence/out_of_step.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/blocked_call.h"
#include "collector/model/gpu_queue.h"
#include "collector/model/operation_kinds.h"

namespace ddpdoctor::detectors::gpu_stalled {
namespace {

using graph::Activity;
using graph::Standing;

constexpr std::size_t kLongestCommand = 80;

bool is_gpu_backend(const std::string& backend) {
  return backend.find("nccl") != std::string::npos || backend.find("rccl") != std::string::npos ||
         backend.find("ucc") != std::string::npos || backend.find("xccl") != std::string::npos;
}

bool is_open(const model::CollectiveCall& call) {
  return call.state == model::CallState::kEnqueued || call.state == model::CallState::kStarted;
}

// Of several open calls, the oldest one blocks the others.
const model::CollectiveCall* oldest_open(const graph::Examination& examination,
                                         const graph::GroupView& view,
                                         const model::CollectiveCall* newest) {
  for (const graph::RankProgress& progress : view.progress) {
    for (const model::CollectiveCall* call :
         examination.history.calls(view.group.id, progress.rank)) {
      if (call->sequence > progress.completed && call->sequence < newest->sequence &&
          is_open(*call) && !call->operation.empty()) {
        newest = call;
      }
    }
  }
  return newest;
}

// All make the communicator: that takes seconds on busy GPUs and in large jobs.
bool may_be_setting_up(const model::JobModel& job, const model::CollectiveCall& call) {
  constexpr double kLongSetup = 60;  // seconds
  return model::kind_of(call.operation).makes_communicator &&
         job.seconds_without_progress.value_or(0) < kLongSetup;
}

// The newest call of all members is exactly the same, and it is open on at least one of them.
const model::CollectiveCall* common_call(const graph::Examination& examination,
                                         const graph::GroupView& view) {
  // A log covers only ranks that wrote to it: membership is certain only for the world.
  const bool members_known =
      examination.job.world_size.has_value() || view.group.name == "default_pg";
  if (!is_gpu_backend(view.group.backend) || !view.disagreements.empty() || !members_known ||
      view.progress.size() < 2 ||
      (!view.group.ranks.empty() && view.progress.size() < view.group.ranks.size())) {
    return nullptr;
  }
  const std::int64_t sequence = view.progress.front().enqueued;
  const model::CollectiveCall* open = nullptr;
  for (const graph::RankProgress& progress : view.progress) {
    const model::CollectiveCall* call =
        examination.history.at(view.group.id, progress.rank, sequence);
    if (progress.enqueued != sequence || call == nullptr) {
      return nullptr;
    }
    open = is_open(*call) ? call : open;
  }
  open = open == nullptr ? nullptr : oldest_open(examination, view, open);
  return open != nullptr && may_be_setting_up(examination.job, *open) ? nullptr : open;
}

// If ranks diverged in one group, kernels of other groups are only queued behind it.
bool somebody_parted(const graph::Examination& examination) {
  return std::any_of(
      examination.groups.begin(), examination.groups.end(),
      [](const graph::GroupView& view) { return view.end_of_agreement() != nullptr; });
}

/// Of all differences, only that of the reduce operation does not prevent NCCL from completing.
bool may_be_the_cause(const std::vector<Compared>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](Compared part) { return part != Compared::kReduceOp; });
}

/// Everything that may differ was compared and is equal: only the transport is left.
void tell_transport(Finding& finding) {
  finding.summary += "; no rank is missing";
  finding.fix =
      "Run with NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1 or NCCL_NVLS_ENABLE=0, one at a time, to "
      "test the transport; check `dmesg` for Xid errors and query NCCL RAS.";
}

void tell_what_is_open(const graph::Examination& examination, const std::vector<Compared>& parts,
                       Finding& finding) {
  constexpr std::size_t kMostNamed = 2;
  const std::string names = parts.size() > kMostNamed ? "arguments" : listed(parts);
  if (parts.size() > kMostNamed) {
    finding.evidence.push_back({.rank = std::nullopt, .text = "not recorded: " + listed(parts)});
  }
  const std::vector<std::string>& command = examination.job.command;
  finding.summary += fmt::format("; whether their {} are equal is unknown", names);
  finding.fix = fmt::format(
      "Start the next run with `ddpdoctor run -- {1}`: it records the {0} of every call.", names,
      command.empty() ? std::string("…")
                      : base::elide(fmt::format("{}", fmt::join(command, " ")), kLongestCommand));
  std::vector<std::string> list;
  for (const Compared part : parts) {
    list.emplace_back(name_of(part));
  }
  finding.details["not_compared"] = std::move(list);
  if (may_be_the_cause(parts)) {
    finding.confidence = Confidence::kPossible;
  }
}

// The device of some rank has not reached this call: it is still in an older call of another group,
// or in a message.
bool some_device_is_elsewhere(const graph::Examination& examination, const graph::GroupView& view) {
  return std::any_of(view.progress.begin(), view.progress.end(), [&](const auto& progress) {
    const auto* oldest = graph::unfinished_on_gpu(examination.history, progress.rank);
    return oldest != nullptr && (oldest->point_to_point || oldest->group != view.group.id);
  });
}

// Ranks whose GPU is known not to have reached the call, while that of another one is in it.
model::RankSet still_before(const graph::Examination& examination, const graph::GroupView& view,
                            const model::CollectiveCall& call) {
  model::RankSet before;
  bool some_are_in_it = false;
  for (const graph::RankProgress& progress : view.progress) {
    const auto* own = examination.history.at(view.group.id, progress.rank, call.sequence);
    if (own == nullptr || !own->begun) {
      return {};
    }
    some_are_in_it = some_are_in_it || *own->begun;
    if (!*own->begun) {
      before.insert(progress.rank);
    }
  }
  return some_are_in_it ? before : model::RankSet{};
}

// What those ranks launched since their last collective, and the others did not.
void add_own_kernels(const graph::Examination& examination, const model::RankSet& before,
                     const graph::GroupView& view, Finding& finding) {
  std::set<std::string> everywhere;
  for (const graph::RankProgress& progress : view.progress) {
    if (!before.contains(progress.rank)) {
      const auto names = model::launched_before(examination.job, progress.rank);
      everywhere.insert(names.begin(), names.end());
    }
  }
  for (const model::Rank rank : before.values()) {
    std::vector<std::string> own = model::launched_before(examination.job, rank);
    std::erase_if(own, [&](const std::string& name) { return everywhere.contains(name); });
    if (!own.empty()) {
      finding.evidence.push_back(
          {.rank = rank,
           .text = fmt::format("since its collective before, only rank {} launched {}", rank,
                               fmt::join(own, ", "))});
    }
  }
}

void tell_whose_gpu(const graph::Examination& examination, const graph::GroupView& view,
                    const model::CollectiveCall& call, const model::RankSet& before,
                    Finding& finding) {
  const bool one = before.size() == 1;
  finding.culprits = before;
  finding.summary = fmt::format(
      "the GPU{} of {} {} not begun {}, in which the others wait; {} still in work launched before "
      "it",
      one ? "" : "s", before.said(), one ? "has" : "have", call_name(examination.job, call),
      one ? "it is" : "they are");
  finding.fix = fmt::format(
      "Find the kernel that does not end: start with CUDA_LAUNCH_BLOCKING=1, and the host of {} "
      "stops in the line that launches it. DDPDOCTOR_CUPTI=always names the kernels.",
      before.said());
  if (call.call_site.known()) {
    finding.locations.push_back(
        location(call.call_site, before, "the GPU has not reached this call"));
  }
  const auto* last =
      examination.history.at(view.group.id, before.values().front(), call.sequence - 1);
  if (last != nullptr && last->call_site.known() && last->call_site.line != call.call_site.line) {
    finding.locations.push_back(location(
        last->call_site, before, "the GPU has finished this; the kernel is launched after it"));
  }
  add_own_kernels(examination, before, view, finding);
}

/// Ranks of the job that no stack, record or line of a log shows: they may not have made the call.
bool some_are_unknown(const graph::Examination& examination) {
  const model::RankSet& untold = examination.job.coverage.unobserved_ranks;
  return !unobserved_ranks(examination).empty() ||
         std::any_of(untold.begin(), untold.end(), [&examination](model::Rank rank) {
           return !examination.history.was_read(rank) &&
                  std::none_of(examination.groups.begin(), examination.groups.end(),
                               [rank](const graph::GroupView& view) {
                                 return view.progress_of(rank) != nullptr;
                               });
         });
}

Findings detect(const graph::Examination& examination) {
  Findings findings;
  if (!may_hang(examination) || some_are_unknown(examination) || somebody_parted(examination)) {
    return findings;
  }
  for (const graph::GroupView& view : examination.groups) {
    const model::CollectiveCall* call = common_call(examination, view);
    if (call == nullptr || out_of_step(examination, view) ||
        some_device_is_elsewhere(examination, view)) {
      continue;
    }
    Finding finding;
    finding.kind = "gpu-stalled";
    const bool sure = examination.still() && examination.job.world_size.has_value();
    finding.confidence = sure ? Confidence::kLikely : Confidence::kPossible;
    finding.waiting = waiting_ranks(examination);
    finding.summary =
        fmt::format("{} {}ranks called {}, but it does not finish",
                    view.progress.size() == 2 ? std::string("both")
                                              : fmt::format("all {}", view.progress.size()),
                    examination.job.world_size ? "" : "known ", call_name(examination.job, *call));
    const std::vector<Compared> open = not_compared(examination, view, call->sequence);
    if (const model::RankSet before = still_before(examination, view, *call); !before.empty()) {
      finding.waiting = finding.waiting.minus(before);
      tell_whose_gpu(examination, view, *call, before, finding);
    } else if (open.empty()) {
      tell_transport(finding);
    } else {
      tell_what_is_open(examination, open, finding);
    }
    if (finding.culprits.empty() && call->call_site.known()) {
      finding.locations.push_back(
          location(call->call_site, finding.waiting, "this collective does not finish"));
    }
    for (model::GpuSentence& sentence : model::gpu_queue(examination.job)) {
      finding.evidence.push_back({.rank = sentence.rank, .text = std::move(sentence.text)});
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: every rank is in the same collective; GPUs show 100 % at low power.

Why: the program is correct: all ranks called the collective. The data does not arrive, because peer-to-peer access does not work
(ACS, IOMMU), a peer cannot reach a network interface, a link or GPU is faulty, or a kernel of another stream occupies the device.

How ddpdoctor knows: all members of the group have the same newest sequence number, this call has not finished, and no rank is
unobserved; operation, size, data type, splits, reduce operation, root and members of the group were compared and are equal. If a
record lacks one of these fields (torch's flight recorder keeps no reduce operation), the report names the field and does not accuse
the transport, because the ranks may differ in it.

What to do next: rule out one transport after another with NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1, NCCL_NVLS_ENABLE=0; read dmesg for
Xid messages; run all_reduce_perf of nccl-tests on the same nodes.

The fix depends on which setting helps:

    $ NCCL_P2P_DISABLE=1 torchrun ...      # helps: the links between the GPUs of one machine
    $ NCCL_IB_DISABLE=1 torchrun ...       # helps: the InfiniBand fabric
    $ dmesg | grep -i xid                  # a GPU fault
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "gpu-stalled",
                           .title = "All ranks called the collective, but it does not finish",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kPlainFact};

}  // namespace ddpdoctor::detectors::gpu_stalled
