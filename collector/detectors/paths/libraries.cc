// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/libraries.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/activity_rules.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/questions.h"
#include "collector/program/questions/feedback.h"

namespace ddpdoctor::detectors {
namespace {

bool is_of_sharding(const model::Frame& frame) {
  constexpr std::array<std::string_view, 4> kFolders = {
      "torch/distributed/fsdp/", "torch/distributed/_composable/fsdp/", "deepspeed/runtime/zero/",
      "fairscale/nn/data_parallel/"};
  return std::any_of(kFolders.begin(), kFolders.end(), [&frame](std::string_view folder) {
    return frame.file.find(folder) != std::string::npos;
  });
}

constexpr std::string_view kHuggingFace = "transformers/trainer.py";

/// Hugging Face's loop over the batches of an epoch has called a step of the user, or waits itself.
bool in_a_step(const model::Thread& thread) {
  const model::Frame* inner = nullptr;
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    const std::string_view called = inner == nullptr ? "" : graph::plain_name(inner->function);
    if (frame.file.ends_with(kHuggingFace) &&
        (called == "training_step" ||
         (inner == nullptr && graph::plain_name(frame.function) == "_run_epoch"))) {
      return true;
    }
    inner = &frame;
  }
  return false;
}

}  // namespace

bool asks_for_shards(const graph::Standing& standing) {
  const model::Frame* asked = nullptr;  // the outermost frame called by the user's line
  if (standing.thread == nullptr) {
    return false;
  }
  for (const model::Frame& frame : standing.thread->frames) {
    if (frame.language != model::Language::kPython || frame.file.ends_with("contextlib.py")) {
      continue;
    }
    if (model::is_user_file(frame.file)) {
      break;
    }
    asked = &frame;
  }
  return asked != nullptr && is_of_sharding(*asked) && asked->function != "forward";
}

bool skips_sharded_module(const graph::Standing* odd, const graph::Standing* rest) {
  return rest != nullptr && in_sharded_module(*rest) && (odd == nullptr || !asks_for_shards(*odd));
}

bool in_sharded_module(const graph::Standing& standing) {
  // An all_reduce there is of whole gradients (ZeRO's stages 1 and 2, a norm): all ranks make it,
  // whatever modules they ran.
  const model::OperationKind kind = model::kind_of(standing.call ? standing.call->operation : "");
  const bool of_shards = !kind.reduces || kind.scatters;
  if (standing.thread == nullptr || !standing.waits_for_ranks() || !of_shards) {
    return false;
  }
  for (const model::Frame& frame : standing.thread->frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (model::is_user_file(frame.file)) {
      return false;
    }
    if (is_of_sharding(frame)) {
      return true;
    }
  }
  return false;
}

bool gathers_inside_another_unit(const graph::Standing& standing, const model::CallSite& line) {
  int units = 0;
  bool in_unit = false;
  for (const model::Frame& frame :
       standing.thread == nullptr ? std::vector<model::Frame>() : standing.thread->frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (frame.file == line.file && frame.line == line.line) {
      return units > 1;
    }
    const bool of_sharding = is_of_sharding(frame);
    units += of_sharding && !in_unit ? 1 : 0;
    in_unit = of_sharding || (in_unit && graph::plain_name(frame.function) == "_call_impl");
  }
  return false;
}

bool in_generate(const model::JobModel& job, const graph::Standing& standing) {
  return standing.thread != nullptr &&
         (model::has_python_frame(*standing.thread, "generate", "generation/utils.py") ||
          model::has_python_frame(*standing.thread, "generate", "generation_utils.py") ||
          model::has_python_frame(*standing.thread, "_sample", "generation/utils.py") ||
          own_generation(job, standing) != nullptr);
}

const model::Frame* own_generation(const model::JobModel& job, const graph::Standing& standing) {
  if (standing.thread == nullptr || !in_sharded_module(standing)) {
    return nullptr;
  }
  for (const model::Frame* frame : model::user_frames(*standing.thread)) {
    if (frame->language == model::Language::kPython &&
        program::feedback_loop(lines_of(job, frame->file), frame->line)) {
      return frame;
    }
  }
  return nullptr;
}

TrainerPlace place_in_trainer(const graph::Standing* standing) {
  if (standing == nullptr || standing->thread == nullptr) {
    return TrainerPlace::kUnknown;
  }
  if (model::has_python_frame(*standing->thread, "_finalize_training", kHuggingFace)) {
    return TrainerPlace::kAfterFit;
  }
  if (in_a_step(*standing->thread) ||
      model::has_python_frame(*standing->thread, "training_step", kHuggingFace) ||
      model::has_python_frame(*standing->thread, "advance", "loops/training_epoch_loop.py") ||
      model::has_python_frame(*standing->thread, "on_run_start", "loops/training_epoch_loop.py")) {
    return TrainerPlace::kInEpoch;
  }
  // Validation ends an epoch; before the end of the epoch, all ranks reach it at the same batch.
  const bool validates =
      model::has_python_frame(*standing->thread, "on_advance_end",
                              "loops/training_epoch_loop.py") &&
      model::has_python_frame(*standing->thread, "run", "loops/evaluation_loop.py");
  const bool between =
      validates ||
      model::has_python_frame(*standing->thread, "on_advance_end", "loops/fit_loop.py") ||
      model::has_python_frame(*standing->thread, "on_run_end", "loops/fit_loop.py");
  if (between) {
    return TrainerPlace::kBetweenEpochs;
  }
  // _run also calls hooks before the loop; hooks after the loop are recognized by name.
  const auto& frames = standing->thread->frames;
  const bool after =
      model::has_python_frame(*standing->thread, "_fit_impl", "trainer/trainer.py") &&
      std::any_of(frames.begin(), frames.end(), [](const model::Frame& frame) {
        const std::string_view name = graph::plain_name(frame.function);
        return name == "on_fit_end" || name == "_teardown" || name == "teardown" ||
               name == "_call_teardown_hook";
      });
  return after ? TrainerPlace::kAfterFit : TrainerPlace::kUnknown;
}

}  // namespace ddpdoctor::detectors
