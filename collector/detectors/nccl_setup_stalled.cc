// SPDX-License-Identifier: Apache-2.0
// nccl-setup-stalled: NCCL's INFO lines of several ranks end in the setup of one communicator. All
// ranks at one step: the transport of that step does not answer. One rank at an earlier step than
// all others: these wait for it. A log may also be cut off, so the end of a log alone is possible.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/setup_steps.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"

namespace ddpdoctor::detectors::nccl_setup_stalled {
namespace {

constexpr std::string_view kKind = "nccl-setup-stalled";
constexpr std::size_t kMostLines = 8;

void add_last_lines(const std::vector<SetupEnd>& ends, Finding& finding) {
  for (const SetupEnd& end : ends) {
    if (finding.evidence.size() < kMostLines) {
      const std::string gpu = end.gpu ? fmt::format(" GPU {}", *end.gpu) : std::string();
      const std::string whose = end.rank ? std::string() : fmt::format(" of {}{}", end.host, gpu);
      finding.evidence.push_back(
          {.rank = end.rank,
           .text = fmt::format("log: the last line{} in the setup: {}", whose, end.text)});
    }
  }
}

/// "rank 1", "GPU 1 of node7" if the number of the rank is unknown.
std::string whom(const SetupEnd& end) {
  return end.rank  ? said(model::RankSet{*end.rank})
         : end.gpu ? fmt::format("GPU {} of {}", *end.gpu, end.host)
                   : end.host;
}

model::RankSet ranks_of(const std::vector<SetupEnd>& ends) {
  model::RankSet out;
  for (const SetupEnd& end : ends) {
    if (end.rank) {
      out.insert(*end.rank);
    }
  }
  return out;
}

Finding stalled_at_one_step(const NcclSetup& setup, bool ended) {
  const SetupStep step = step_named(setup.ends.front());
  Finding finding;
  finding.kind = kKind;
  finding.confidence = ended ? Confidence::kLikely : Confidence::kPossible;
  finding.waiting = ranks_of(setup.ends);
  const std::string who = finding.waiting.empty() ? "its ranks" : said(finding.waiting);
  const auto unseen = setup.size - static_cast<std::int64_t>(setup.ends.size());
  finding.summary = fmt::format("NCCL's {} does not finish on {}: {}{}",
                                is_lazy(setup) ? "first connection" : "setup", who, step.what,
                                setup.via.empty() || step.name != "connect"
                                    ? std::string()
                                    : fmt::format(" ({})", fmt::join(setup.via, ", ")));
  if (unseen > 0) {
    finding.summary +=
        fmt::format("; {} other {} wrote no such line", unseen, unseen == 1 ? "rank" : "ranks");
  }
  finding.fix = fix_of_step(step, setup.via);
  add_last_lines(setup.ends, finding);
  finding.details["step"] = std::string(step.name);
  return finding;
}

Finding one_is_behind(const NcclSetup& setup, const SetupEnd& behind, bool ended) {
  const SetupStep step = step_named(behind);
  Finding finding;
  finding.kind = kKind;
  finding.confidence = ended ? Confidence::kLikely : Confidence::kPossible;
  std::vector<SetupEnd> others = setup.ends;
  std::erase_if(others, [&behind](const SetupEnd& end) { return end.is_same_gpu(behind); });
  finding.waiting = ranks_of(others);
  if (behind.rank) {
    finding.culprits.insert(*behind.rank);
  }
  finding.summary =
      fmt::format("{} is behind the others in NCCL's setup: {}", whom(behind), step.what);
  finding.fix = fmt::format(
      "Run `py-spy dump --native --pid {}` on {} during the wait, and read `dmesg` and "
      "`nvidia-smi` "
      "there: this process stays in that step.",
      behind.pid, behind.host);
  std::vector<SetupEnd> all = {behind};
  all.insert(all.end(), others.begin(), others.end());
  add_last_lines(all, finding);
  finding.details["step"] = std::string(step.name);
  finding.details["pid"] = static_cast<std::int64_t>(behind.pid);
  return finding;
}

Findings detect(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  if (job.logs.empty() || job.progress == model::Progress::kMoving || output_goes_on(job)) {
    return {};
  }
  const std::optional<NcclSetup> setup = unfinished_setup(job);
  if (!setup) {
    return {};
  }
  const bool ended = job.ended || was_given_up(job);
  if (const auto behind = one_behind(*setup)) {
    return {one_is_behind(*setup, *behind, ended)};
  }
  return at_one_step(*setup) ? Findings{stalled_at_one_step(*setup, ended)} : Findings{};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "NCCL's setup of a communicator does not finish",
    .explanation =
        R"(What you see: the first collective, or init_process_group, does not return and no error appears. With NCCL_DEBUG=INFO, the last
lines of all ranks are of one step of the setup ("NVLS Bind mem", "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"), and "Init COMPLETE" does not follow.

Why: NCCL sets up one transport after the other: memory of other GPUs (P2P), shared memory, the network, NVLink SHARP (NVLS). A driver, an
IOMMU, the fabric manager, a container without the needed devices, or a firewall does not answer there. Or one rank does not arrive.

How ddpdoctor knows: NCCL's INFO lines name the process and the GPU, the communicator and its size. If all ranks stop at one step, that step
is reported; if all but one stop at a later step, that one is behind. The end of a log alone is possible: the log may be cut off.
It is likely if the log shows that the job was interrupted or timed out.

Fix: disable the transport of that step. If the job then runs, repair the transport, or keep the setting.
    $ NCCL_NVLS_ENABLE=0 torchrun ...     # NVLink SHARP
    $ NCCL_P2P_DISABLE=1 torchrun ...     # memory of other GPUs
    $ NCCL_IB_DISABLE=1 torchrun ...      # InfiniBand or RoCE)",
    .detect = detect,
    .specificity = kPlainFact,
};

}  // namespace ddpdoctor::detectors::nccl_setup_stalled
