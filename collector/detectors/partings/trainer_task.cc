// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/trainer_task.h"

#include "collector/detectors/paths/libraries.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/deciding.h"

namespace ddpdoctor::detectors {
namespace {

/// The task that Hugging Face's trainer does after a step on this side.
std::optional<program::TrainerTask> task_of(const Side& side) {
  const auto stands_in = [&side](std::string_view function) {
    return side.standing != nullptr && side.standing->thread != nullptr &&
           model::has_python_frame(*side.standing->thread, function, "transformers/trainer.py");
  };
  if (!stands_in("_maybe_log_save_evaluate")) {
    return std::nullopt;
  }
  return stands_in("_evaluate") || stands_in("evaluate")
             ? std::optional(program::TrainerTask::kEvaluation)
         : stands_in("_save_checkpoint") ? std::optional(program::TrainerTask::kSave)
                                         : std::nullopt;
}

}  // namespace

std::optional<Branch> own_test_around(const model::JobModel& job, const std::string& file,
                                      const program::SourceText& lines, int line) {
  for (const program::Block& block : program::deciding_branches(lines, line)) {
    const auto on = dependence_of(job, lines, block);
    if (!is_loop(block) && on == program::Dependence::kData) {
      const model::CallSite site = {
          .file = file, .line = line, .function = function_around(lines, line)};
      return branch_of(block, site, on, true);
    }
  }
  return std::nullopt;
}

std::optional<Branch> asked_by_user(const model::JobModel& job, program::TrainerTask task) {
  for (const auto& [file, lines] : job.sources) {
    if (!model::is_user_file(file)) {
      continue;
    }
    for (const auto& [name, set] : program::facts_of(lines).attributes) {
      const program::Binding& binding = set.binding;
      const bool assigns = binding.kind == program::BindingKind::kAssign && binding.value &&
                           binding.target.find('.') != std::string::npos;
      if (!assigns || program::asked_of_trainer(name) != task || binding.value.text() == "False") {
        continue;
      }
      if (auto test = own_test_around(job, file, lines, binding.line)) {
        return test;
      }
      const program::Block value = {.line = binding.line,
                                    .text = binding.value.one_line(),
                                    .condition = binding.value.one_line()};
      if (!binding.unpacked && reads_own(job, lines, value)) {
        return branch_of(
            value,
            {.file = file, .line = binding.line, .function = function_around(lines, binding.line)},
            program::Dependence::kData, true);
      }
    }
  }
  return std::nullopt;
}

bool read_asked_task(const graph::Examination& examination, Explanation& explanation) {
  const auto odd = task_of(explanation.parting.odd);
  const auto rest = task_of(explanation.parting.rest);
  if (odd.has_value() == rest.has_value() ||
      place_in_trainer((odd ? explanation.parting.rest : explanation.parting.odd).standing) !=
          TrainerPlace::kInEpoch) {
    return false;
  }
  auto asked = asked_by_user(examination.job, odd ? *odd : *rest);
  if (!asked) {
    return false;
  }
  if (rest && explanation.parting.tie) {
    explanation.turn();
  }
  asked->leads_to_ours = odd || explanation.parting.tie;
  explanation.branch = std::move(asked);
  explanation.otherwise = kOrData;
  explanation.cause = Cause::kDivergent;
  return true;
}

}  // namespace ddpdoctor::detectors
