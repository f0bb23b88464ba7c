// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/waiting_aborts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/graph/device_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// NCCL 2.4 to 2.30: each of them synchronizes a stream of the communicator (commDestroySync).
constexpr std::array<std::string_view, 4> kEnds = {"ncclCommAbort", "ncclCommDestroy",
                                                   "ncclCommFinalize", "ncclCommRevoke"};

std::string end_in(const model::Thread& thread) {
  for (const std::string_view end : kEnds) {
    const bool there =
        std::any_of(thread.frames.begin(), thread.frames.end(), [end](const model::Frame& frame) {
          return frame.language == model::Language::kNative &&
                 (frame.function == end || frame.function.ends_with(end));
        });
    if (there) {
      return std::string(end);
    }
  }
  return {};
}

}  // namespace

std::vector<WaitingAbort> waiting_aborts(const graph::Examination& examination,
                                         const model::RankSet& ranks) {
  std::vector<WaitingAbort> out;
  for (const model::Rank rank : ranks) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing == nullptr || standing->process == nullptr) {
      continue;
    }
    for (const model::Thread& thread : standing->process->threads) {
      std::string end = graph::waits_for_device(thread.frames) ? end_in(thread) : std::string();
      if (!end.empty() && &thread != standing->thread) {
        out.push_back(
            {.process = standing->process, .thread = &thread, .function = std::move(end)});
      }
    }
  }
  return out;
}

void tell_waiting_aborts(const graph::Examination& examination, Finding& finding) {
  constexpr std::size_t kMostTold = 8;
  const auto aborts = waiting_aborts(examination, finding.waiting);
  if (aborts.empty()) {
    return;
  }
  const WaitingAbort& first = aborts.front();
  finding.summary += fmt::format("; {} ({}) waits for it, too, and cannot end it", first.function,
                                 thread_name(*first.thread));
  for (std::size_t i = 0; i < std::min(aborts.size(), kMostTold); ++i) {
    const WaitingAbort& one = aborts[i];
    finding.evidence.push_back(
        {.rank = one.process->rank,
         .text = fmt::format("{} is in {}, which synchronizes its stream: it returns only after "
                             "the kernels before it",
                             full_thread_name(*one.thread), one.function)});
  }
  finding.fix =
      (first.process->pid > 0
           ? fmt::format("End the process with `kill -9 {}`: ", first.process->pid)
           : std::string("End the process with SIGKILL: ")) +
      fmt::format("{} cannot stop the kernel that it waits for. {}", first.function, finding.fix);
}

}  // namespace ddpdoctor::detectors
