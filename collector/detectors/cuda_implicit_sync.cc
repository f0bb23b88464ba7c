// SPDX-License-Identifier: Apache-2.0
// cuda-implicit-sync: one rank is in cudaFree, cudaMalloc or another call that waits for the whole
// device, while an NCCL kernel on that device waits for a call that the same thread has not made
// yet.
#include <array>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::cuda_implicit_sync {
namespace {

constexpr std::string_view kKind = "cuda-implicit-sync";

/// Calls that implicitly wait for all work of the device.
constexpr std::array<std::string_view, 7> kCalls = {
    "cudaFree",   "cudaMalloc",         "cudaHostAlloc", "cuMemFree",
    "cuMemAlloc", "cudaHostUnregister", "cuModuleLoad"};

std::string_view synchronising_call(const model::Thread& thread) {
  for (const std::string_view call : kCalls) {
    if (model::has_native_frame(thread, call)) {
      return call;
    }
  }
  return {};
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  std::vector<Suspect> suspects;
  for (const graph::Standing& standing : examination.standings) {
    const model::Thread* main =
        standing.process == nullptr ? nullptr : model::main_thread(*standing.process);
    if (!still || main == nullptr || standing.waits_for_ranks()) {
      continue;
    }
    const std::string_view call = synchronising_call(*main);
    if (call.empty()) {
      continue;
    }
    Suspect suspect = suspect_in(examination, *standing.process, main);
    suspect.confidence = *still;
    suspect.note = fmt::format("rank {} is waiting here, in {}", standing.rank, call);
    suspect.evidence = fmt::format(
        "{} waits for every kernel of the GPU; the NCCL kernel among them waits for other ranks",
        call);
    suspects.push_back(std::move(suspect));
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    if (finding.waiting.empty()) {
      continue;  // all ranks allocate: that is only slow
    }
    finding.summary =
        fmt::format("{} {} blocked in {} ({}) until all kernels of the GPU finish{}", who(there),
                    is_or_are(finding.culprits), synchronising_call(*there.front().thread),
                    place(there.front().place), and_who_waits(finding));
    finding.fix =
        "Allocate and free (empty_cache, pinned buffers, deleted graphs) at the same point on all "
        "ranks, outside the overlap with collectives.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A CUDA call waits for a kernel that waits for this rank",
    .explanation =
        R"(What you see: one rank is in cudaFree, cudaFreeHost or cudaMalloc, often from the garbage collector; the others wait for a
collective.

Why: these calls wait until the device is idle. A running NCCL kernel waits for a peer, and the peer waits for a call that this rank
would make next.

How ddpdoctor knows: the native frames of that rank show the call, and the other ranks are in a collective.

Fix: free and allocate at the same point on all ranks, outside the overlap with collectives.
    -     if rank == 0:
    -         torch.cuda.empty_cache()
    + torch.cuda.synchronize()
    + torch.cuda.empty_cache()        # on every rank, between two steps)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::cuda_implicit_sync
