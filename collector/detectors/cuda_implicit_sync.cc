// SPDX-License-Identifier: Apache-2.0
// cuda-implicit-sync: one rank is in cudaFree, cudaMalloc or another call that waits for the whole
// device, while an NCCL kernel on that device waits for a call that the same thread has not made
// yet.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/device_calls.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/device_waits.h"
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

/// The end of a communicator waits for the device as well, with the locks of the driver.
std::string_view call_for_all(const model::Thread& thread) {
  const std::string_view call = synchronising_call(thread);
  return call.empty() && model::has_native_frame(thread, "ncclCommDestroy")
             ? std::string_view("ncclCommDestroy")
             : call;
}

/// Beside it, another thread of the process waits for work on its own stream, or its launch of NCCL
/// waits for a lock of the driver.
const model::Thread* held_beside(const model::Process& process, const model::Thread& caller) {
  const auto waits = [](const model::Thread& one) {
    const auto call = device_call_of(one);
    return (graph::is_inside_driver(one.frames) && graph::waits_for_device(one.frames)) ||
           (call && call->lock && model::has_native_frame(one, "ncclGroupEnd"));
  };
  const auto found =
      std::find_if(process.threads.begin(), process.threads.end(), [&](const model::Thread& one) {
        return &one != &caller && call_for_all(one).empty() && waits(one);
      });
  return found == process.threads.end() ? nullptr : &*found;
}

/// Threads of one process that each have a GPU of their own: a thread that frees memory waits for
/// kernels, and one of these waits for the call that this thread makes next.
Findings between_threads(const graph::Examination& examination, Confidence still) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    for (const model::Thread& thread : process->threads) {
      const std::string_view call =
          graph::is_inside_driver(thread.frames) ? call_for_all(thread) : std::string_view();
      const model::Thread* other = call.empty() ? nullptr : held_beside(*process, thread);
      if (other == nullptr || !findings.empty()) {
        continue;
      }
      Suspect suspect = suspect_in(examination, *process, &thread);
      suspect.confidence = at_most(still, Confidence::kPossible);
      suspect.note = fmt::format("{} is waiting here, in {}", full_thread_name(thread), call);
      suspect.evidence = fmt::format(
          "{} waits in {} for every kernel of the GPU; {} waits for its own stream or for a lock "
          "of the driver",
          full_thread_name(thread), call, full_thread_name(*other));
      Finding finding = accuse(examination, kKind, {suspect});
      if (const model::Frame* frame = model::find_native_frame(thread, call);
          frame != nullptr && !suspect.place.known()) {
        finding.locations.push_back(
            location(model::call_site(*frame), finding.culprits, suspect.note));
      }
      if (const model::CallSite at = suspect_in(examination, *process, other).place; at.known()) {
        finding.locations.push_back(
            location(at, finding.culprits, full_thread_name(*other) + " is waiting here"));
      }
      finding.summary =
          fmt::format("{} of {} is blocked in {}{} until all kernels of the GPU finish, beside {}",
                      full_thread_name(thread),
                      process->rank ? who({suspect}) : named(process->pid, "a process"), call,
                      placed(suspect.place), full_thread_name(*other));
      finding.fix =
          "Allocate, free and end communicators before the threads launch collectives, or after "
          "all of these have finished.";
      findings.push_back(std::move(finding));
    }
  }
  return findings;
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
  return findings.empty() && still ? between_threads(examination, *still) : findings;
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

How ddpdoctor knows: the native frames of that rank show the call, and the other ranks are in a collective. Or one thread of a
process is in such a call, or in ncclCommDestroy, and another one waits for its stream or for a lock of the driver (possible).

Fix: free and allocate at the same point on all ranks, outside the overlap with collectives.
    -     if rank == 0:
    -         torch.cuda.empty_cache()
    + torch.cuda.synchronize()
    + torch.cuda.empty_cache()        # on every rank, between two steps)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::cuda_implicit_sync
