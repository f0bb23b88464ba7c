// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/recomputation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/partings/trainer_task.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kFile = "torch/utils/checkpoint.py";
constexpr std::string_view kCheckpoint = "torch.utils.checkpoint.checkpoint";

/// The Python frames around the innermost one of the user's, innermost first.
std::vector<const model::Frame*> around_user_code(const Side& side) {
  std::vector<const model::Frame*> out;
  if (side.standing == nullptr || side.standing->thread == nullptr) {
    return out;
  }
  bool inside = true;
  for (const model::Frame& frame : side.standing->thread->frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    if (!inside) {
      out.push_back(&frame);
    }
    inside = inside && !model::is_user_file(frame.file);
  }
  return out;
}

/// It is in a forward that a backward repeats for activation checkpointing.
bool repeats_a_forward(const Side& side) {
  const auto around = around_user_code(side);
  const auto in_file = [](const model::Frame* frame) { return frame->file.ends_with(kFile); };
  return std::any_of(around.begin(), around.end(), in_file) &&
         std::none_of(around.begin(), around.end(), [&](const model::Frame* frame) {
           // It is on the stack of the first forward.
           return in_file(frame) && frame->function == "checkpoint";
         });
}

/// The test of the rank's own data around a call of checkpoint().
std::optional<Branch> own_choice_of_checkpoints(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    if (!model::is_user_file(file)) {
      continue;
    }
    const program::Files files(lines, job.sources);
    const program::File& here = files.file_of(lines);
    for (const auto& [name, call] : here.facts->calls) {
      const std::string dotted = program::dotted_name(call.call.field(program::Field::kFunction));
      const bool checkpoints =
          !dotted.empty() && files.resolve(here, call.scope, dotted).qualified == kCheckpoint;
      auto test = checkpoints ? own_test_around(job, file, lines, call.call.line()) : std::nullopt;
      if (test) {
        return test;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool calls_from_backward(const Side& side) {
  const auto around = around_user_code(side);
  return repeats_a_forward(side) ||
         std::any_of(around.begin(), around.end(), [](const model::Frame* frame) {
           return frame->file.find("torch/autograd/") != std::string::npos;
         });
}

void add_repeated_forward(const Side& side, Finding& finding) {
  if (repeats_a_forward(side)) {
    finding.evidence.push_back(
        {.rank = side.ranks.front(),
         .text = fmt::format(
             "{} {} in a forward that {} backward repeats (activation checkpointing)",
             said(side.ranks), is_or_are(side.ranks), side.ranks.size() == 1 ? "its" : "their")});
  }
}

bool read_recomputation(const graph::Examination& examination, Explanation& explanation) {
  Explanation turned = explanation;
  if (!repeats_a_forward(turned.parting.odd)) {
    turned.turn();
  }
  const Parting& parting = turned.parting;
  if (!repeats_a_forward(parting.odd) || repeats_a_forward(parting.rest) ||
      !in_backward(examination, parting.rest) || parting.shifted) {
    return false;
  }
  auto choice = own_choice_of_checkpoints(examination.job);
  if (!choice) {
    return false;
  }
  choice->unproven = true;  // another call of checkpoint() may be the one
  turned.branch = std::move(choice);
  turned.cause = Cause::kDivergent;
  explanation = std::move(turned);
  return true;
}

}  // namespace ddpdoctor::detectors
