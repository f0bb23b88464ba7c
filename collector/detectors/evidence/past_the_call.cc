// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/past_the_call.h"

#include <algorithm>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

/// Outermost first.
std::vector<const model::Frame*> python_frames_of(const graph::Standing* standing) {
  std::vector<const model::Frame*> out;
  if (standing == nullptr || standing->thread == nullptr) {
    return out;
  }
  const auto& frames = standing->thread->frames;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->language == model::Language::kPython) {
      out.push_back(&*frame);
    }
  }
  return out;
}

/// A loop repeats the call after the other line, or the lines are in different branches.
bool source_explains(const model::JobModel& job, const model::Frame& rank,
                     const model::Frame& waiting) {
  const auto& lines = lines_of(job, rank.file);
  if (program::loop_around(lines, waiting.line)) {
    return true;
  }
  const auto of_rank = program::enclosing(lines, rank.line);
  const auto of_waiting = program::enclosing(lines, waiting.line);
  return std::any_of(of_rank.begin(), of_rank.end(), [&of_waiting](const program::Block& block) {
    return block.kind == program::BlockKind::kElse &&
           std::any_of(of_waiting.begin(), of_waiting.end(), [&block](const program::Block& other) {
             return other.line == block.tested;
           });
  });
}

}  // namespace

std::optional<PastTheCall> may_have_passed(const graph::Examination& examination,
                                           const graph::Standing* rank,
                                           const graph::Standing* waiting) {
  const auto ours = python_frames_of(rank);
  const auto theirs = python_frames_of(waiting);
  if (!examination.job.collectives.empty()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i]->file != theirs[i]->file || ours[i]->function != theirs[i]->function) {
      return std::nullopt;
    }
    if (ours[i]->line != theirs[i]->line) {
      const bool past = ours[i]->line > theirs[i]->line &&
                        !source_explains(examination.job, *ours[i], *theirs[i]);
      return past ? std::optional(PastTheCall{.rank = model::call_site(*ours[i]),
                                              .waiting = model::call_site(*theirs[i])})
                  : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
