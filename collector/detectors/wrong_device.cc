// SPDX-License-Identifier: Apache-2.0
// wrong-device: several ranks of one host have a context on one GPU: set_device was forgotten, or a
// checkpoint was loaded without map_location. GPU 0 runs out of memory, or collectives wait on the
// wrong device.
#include <map>

#include <fmt/format.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/known_exceptions.h"
#include "collector/detectors/processes.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "wrong-device";
constexpr std::string_view kFix =
    "Call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any CUDA or collective "
    "call, and load checkpoints with map_location.";

std::optional<model::Rank> rank_of(const model::JobModel& job, const model::Fact& context) {
  if (context.rank || !context.pid) {
    return context.rank;
  }
  const model::Process* process = model::process(job, *context.pid);
  return process == nullptr ? std::nullopt : served_rank(job, *process);
}

/// Ranks with a context on each GPU, by uuid: device indices depend on CUDA_VISIBLE_DEVICES and on
/// the host.
std::map<std::string, model::RankSet> ranks_by_gpu(const model::JobModel& job) {
  std::map<std::string, model::RankSet> out;
  for (const model::Fact* context : model::facts(job, "cuda-context")) {
    const auto rank = rank_of(job, *context);
    const auto device = context->number("device");
    const std::string gpu =
        context->text("uuid").value_or(device ? fmt::format("{:.0f}", *device) : "");
    if (rank.has_value() && !gpu.empty()) {
      out[gpu].insert(rank.value());
    }
  }
  return out;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  const auto gpus = ranks_by_gpu(examination.job);
  for (const auto& [gpu, ranks] : gpus) {
    if (ranks.size() < 2) {
      continue;
    }
    // One GPU for all is a choice (a test machine); more GPUs of which one is shared is a mistake.
    Finding finding;
    finding.kind = kKind;
    finding.culprits = ranks;
    finding.confidence = gpus.size() > 1 ? Confidence::kLikely : Confidence::kPossible;
    finding.summary = fmt::format("{} all have a context on GPU {}", said(ranks), gpu);
    finding.fix = kFix;
    add_waiting(examination, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector wrong_device;
const Detector wrong_device{
    .kind = kKind,
    .title = "Several ranks use one GPU",
    .explanation =
        R"(What you see: GPU 0 is out of memory while the others are not; "devices used by this process are currently unknown"; a barrier
that hangs.

Why: without set_device a rank's first CUDA call, and collectives without tensors, go to GPU 0.

How it is recognised: the CUDA contexts of the ranks; torch's warning.

Fix:
    + torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
      dist.init_process_group("nccl"))",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors
