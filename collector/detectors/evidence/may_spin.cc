// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/may_spin.h"

#include <algorithm>

#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool may_spin(const graph::Standing& standing) {
  if (standing.process == nullptr || standing.thread == nullptr || standing.moved ||
      !standing.on_cpu || !model::was_dumped(*standing.process)) {
    return false;
  }
  const auto& frames = standing.thread->frames;
  const bool of_python = std::none_of(frames.begin(), frames.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kNative;
  });
  return of_python &&
         model::has_python_frame(*standing.thread, "_call_impl", "torch/nn/modules/module.py");
}

}  // namespace ddpdoctor::detectors
