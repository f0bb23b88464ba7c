// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/generation.h"

#include <algorithm>

#include "collector/detectors/partings/ran_on.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/libraries.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/feedback.h"

namespace ddpdoctor::detectors {

std::optional<model::CallSite> own_generation_line(const graph::Examination& examination,
                                                   const Side& side) {
  const model::JobModel& job = examination.job;
  if (ran_on(examination, side)) {
    const auto line =
        std::find_if(side.path.begin(), side.path.end(), [&job](const model::CallSite& site) {
          return program::feedback_loop(lines_of(job, site.file), site.line).has_value();
        });
    return gathers_unasked(job, side) && line != side.path.end() ? std::optional(*line)
                                                                 : std::nullopt;
  }
  const model::Frame* const frame =
      side.standing == nullptr ? nullptr : own_generation(job, *side.standing);
  return frame == nullptr
             ? std::nullopt
             : std::optional(model::CallSite{
                   .file = frame->file, .line = frame->line, .function = frame->function});
}

bool is_generating(const graph::Examination& examination, const Side& side) {
  return ran_on(examination, side)
             ? own_generation_line(examination, side).has_value()
             : side.standing != nullptr && in_generate(examination.job, *side.standing);
}

}  // namespace ddpdoctor::detectors
