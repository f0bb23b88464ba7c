// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/trainer_place.h"

#include <algorithm>

#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool is_of_trainer(const model::Frame& frame) {
  return !model::is_user_file(frame.file) && (frame.file.ends_with("transformers/trainer.py") ||
                                              frame.file.ends_with("trainer/trainer.py"));
}

bool leads_through(const Path& path, const model::CallSite& site) {
  return std::any_of(path.begin(), path.end(),
                     [&site](const auto& one) { return graph::same_line(one, site); });
}

}  // namespace

// User frames further in, such as an overridden training_step, are called by the trainer's loop.
model::CallSite call_of_trainer(const Side& side) {
  const model::Frame* call = nullptr;
  bool in_trainer = false;
  for (const model::Frame& frame : side.standing->thread->frames) {  // innermost first
    const bool users = model::is_user_file(frame.file);
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (is_of_trainer(frame)) {
      in_trainer = true;
      call = nullptr;
    } else if (users && in_trainer && call == nullptr) {
      call = &frame;
    }
  }
  return call == nullptr ? model::CallSite{} : model::call_site(*call);
}

TrainerPlace place_of(const Side& side, const Side& other) {
  const TrainerPlace place = place_in_trainer(side.standing);
  if (place != TrainerPlace::kUnknown || side.call == nullptr || side.path.empty() ||
      side.standing == nullptr || side.standing->callers.empty() || other.standing == nullptr ||
      other.standing->thread == nullptr) {
    return place;
  }
  const model::CallSite fit = call_of_trainer(other);
  return fit.known() && graph::same_line(side.path.front(), fit) &&
                 !leads_through(side.standing->callers, fit)
             ? TrainerPlace::kAfterFit
             : place;
}

}  // namespace ddpdoctor::detectors
