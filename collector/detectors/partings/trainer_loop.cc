// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/trainer_loop.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/dispatch.h"
#include "collector/detectors/partings/framework_choice.h"
#include "collector/detectors/partings/framework_paths.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/handed_decision.h"
#include "collector/detectors/partings/trainer_place.h"
#include "collector/detectors/partings/trainer_task.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/libraries.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kOrHook =
    "A collective that only some ranks call in a hook of the validation would look the same.";

/// The origin of the call in which a rank waits among the batches of an epoch.
enum class Before {
  kUnknown,
  kBatch,     // the previous batch: the others had no more batches
  kElsewhere  // after a validation that the others are still in: all had the same number
};

/// Judged by the previous call: most batches follow a batch. Undecided if an epoch has few batches.
Before came_from(const graph::Examination& examination, const Side& side,
                 const std::string& group) {
  constexpr std::size_t kEnough = 2;
  if (side.call == nullptr) {
    return Before::kUnknown;
  }
  const graph::Calls& calls = examination.history.calls(group, side.ranks.front());
  const auto now = std::find_if(calls.begin(), calls.end(), [&side](const auto* call) {
    return call->sequence == side.call->sequence;
  });
  if (now == calls.end() || now == calls.begin()) {
    return Before::kUnknown;
  }
  std::size_t alike = 0;
  std::vector<std::pair<const model::CollectiveCall*, std::size_t>> others;
  for (auto call = calls.begin() + 1; call < now; ++call) {
    const model::CollectiveCall& before = **(call - 1);
    if (!same_content(**call, **now)) {
      continue;
    }
    if (same_content(before, **(now - 1))) {
      ++alike;
      continue;
    }
    const auto known = std::find_if(others.begin(), others.end(), [&before](const auto& other) {
      return same_content(*other.first, before);
    });
    if (known == others.end()) {
      others.emplace_back(&before, 1);
    } else {
      ++known->second;
    }
  }
  std::size_t most = 0;
  for (const auto& other : others) {
    most = std::max(most, other.second);
  }
  if (most >= kEnough && most >= 2 * alike) {
    return Before::kElsewhere;
  }
  return alike >= kEnough && alike >= 2 * most ? Before::kBatch : Before::kUnknown;
}

bool stands_in(const Side& side, std::string_view function, std::string_view file) {
  return side.standing != nullptr && side.standing->thread != nullptr &&
         model::has_python_frame(*side.standing->thread, function, file);
}

/// A statement that logs a value which all ranks reduce together; those at the end of an epoch
/// first.
std::optional<model::CallSite> logs_for_all(const model::JobModel& job) {
  constexpr std::string_view kReduced = "sync_dist=True";
  std::optional<model::CallSite> found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [line, text] : lines) {
      if (!model::is_user_file(file) || text.find(kReduced) == std::string::npos ||
          base::trim(text).starts_with("#")) {
        continue;
      }
      model::CallSite site{.file = file, .line = line, .function = function_around(lines, line)};
      if (site.function.ends_with("epoch_end")) {
        return site;
      }
      found = found ? std::move(found) : std::optional(std::move(site));
    }
  }
  return found;
}

/// One side reduces values logged with sync_dist=True, and the other had fewer of them.
bool read_logged(const graph::Examination& examination, Explanation& explanation) {
  const auto reduces = [](const Side& side) {
    return stands_in(side, "compute", "logger_connector/result.py");
  };
  const auto site = logs_for_all(examination.job);
  if (!site || reduces(explanation.parting.odd) == reduces(explanation.parting.rest)) {
    return false;
  }
  if (reduces(explanation.parting.rest)) {
    explanation.turn();
  }
  const program::SourceText& lines = lines_of(examination.job, site->file);
  for (const program::Block& block : program::deciding_branches(lines, site->line)) {
    if (!is_loop(block) &&
        dependence_of(examination.job, lines, block) == program::Dependence::kRank) {
      explanation.branch = branch_of(block, *site, program::Dependence::kRank, true);
      explanation.cause = Cause::kRankConditional;
      return true;
    }
  }
  explanation.loop = LeftLoop{.where = *site,
                              .header = program::statement_at(lines, site->line),
                              .ours_left = false,
                              .over_keys = true,
                              .way_out = std::nullopt};
  explanation.cause = Cause::kCount;
  return true;
}

/// All had the same number of batches, and the odd side is still in those of the validation.
bool read_validation(const model::CallSite& fit, Explanation& explanation) {
  const bool odd = stands_in(explanation.parting.odd, "_evaluation_step", "evaluation_loop.py");
  const bool rest = stands_in(explanation.parting.rest, "_evaluation_step", "evaluation_loop.py");
  if (odd == rest) {
    return false;
  }
  if (odd) {
    explanation.turn();
  }
  explanation.loop =
      LeftLoop{.where = fit, .header = "for batch in val_dataloaders", .way_out = std::nullopt};
  explanation.cause = Cause::kUneven;
  return true;
}

/// The test under which a hook of the user's gives the trainer nothing, so that it skips a batch.
std::optional<Branch> own_omission(const graph::Examination& examination) {
  const program::HandedOver* found = nullptr;
  for (const program::HandedOver& one : handed_over(examination)) {
    const bool better = found == nullptr || (found->source == program::Source::kUnknown &&
                                             one.source != program::Source::kUnknown);
    if (one.as == program::HandedOver::As::kNothing && one.source != program::Source::kRank &&
        better) {
      found = &one;
    }
  }
  if (found == nullptr) {
    return std::nullopt;
  }
  const model::CallSite site = {
      .file = found->decides.file, .line = found->decides.line, .function = found->function};
  return branch_of({.line = site.line, .text = {}, .condition = found->decides.text}, site,
                   program::Dependence::kData, true);
}

/// Between epochs, in a user's hook, after a test: a rank among the batches may have passed the
/// hook but failed the test. If the hook always makes the call, only the data remains as a cause.
bool read_hook(const graph::Examination& examination, Explanation& explanation) {
  if (!explanation.fork || explanation.fork->below_ours.empty()) {
    return false;
  }
  Fork hook = *explanation.fork;
  hook.below_theirs.clear();
  auto test = any_branch(examination.job, hook);
  if (!test) {
    const bool chosen = read_dispatch(examination, explanation, ChosenBy::kAnything);
    explanation.otherwise = chosen ? kOrData : explanation.otherwise;
    return chosen;
  }
  explanation.branch = std::move(test);
  explanation.otherwise = kOrData;
  explanation.cause = Cause::kDivergent;
  return true;
}

/// Both are among the batches, one in a call of user code and the other in a call of the trainer
/// without user frames: the latter skipped the user's call.
bool read_lone_call(const graph::Examination& examination, Explanation& explanation) {
  Explanation turned = explanation;
  if (!turned.parting.odd.site().known()) {
    turned.turn();
  }
  const Parting& parting = turned.parting;
  if (parting.shifted || !parting.odd.site().known() || parting.rest.site().known() ||
      !parting.odd.calls() || !parting.rest.calls()) {
    return false;
  }
  turned.fork = Fork{.ours = parting.odd.path.back(),
                     .theirs = {},
                     .below_ours = parting.odd.path,
                     .below_theirs = {}};
  turned.branch = any_branch(examination.job, *turned.fork);
  if (!turned.branch) {
    return false;
  }
  turned.cause = Cause::kDivergent;
  if (parting.odd.ranks.size() > parting.rest.ranks.size()) {
    turned.turn();
  }
  explanation = std::move(turned);
  return true;
}

/// One side begins a batch while the other is in the backward of one that the first skipped, and no
/// user line separates them.
bool read_omitted_batch(const graph::Examination& examination, Explanation& explanation) {
  const auto begins = [](const Side& side) {
    return stands_in(side, "_broadcast_sigterm_tensor", "loops/training_epoch_loop.py");
  };
  Explanation turned = explanation;
  if (!begins(turned.parting.odd)) {
    turned.turn();
  }
  if (turned.parting.shifted || turned.fork || !begins(turned.parting.odd) ||
      begins(turned.parting.rest) ||
      turned.parting.rest.activity() != graph::Activity::kDdpBackward) {
    return false;
  }
  turned.branch = own_omission(examination);
  if (!turned.branch) {
    return false;
  }
  turned.branch->leads_to_ours = false;
  turned.otherwise = "A step that was left out for another reason would look the same.";
  turned.cause = Cause::kDivergent;
  explanation = std::move(turned);
  return true;
}

/// Records without stacks: one side makes a call that never came at this place in a step before,
/// and the other continues as in each step: because the user's code asked the trainer to stop, if a
/// known source does.
bool read_recorded_stop(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const Newcomer who =
      parting.recorded && !parting.shifted && parting.odd.call != nullptr &&
              parting.rest.call != nullptr
          ? newcomer_in_one_line(examination, *parting.odd.call, *parting.rest.call)
          : Newcomer::kNeither;
  if (who == Newcomer::kNeither) {
    return false;
  }
  if (who == Newcomer::kRest) {
    explanation.turn();
  }
  explanation.parting.tie = false;
  explanation.parting.settled = true;
  explanation.branch = asked_by_user(examination.job, program::TrainerTask::kEnd);
  explanation.otherwise = explanation.branch ? kOrData : std::string_view();
  explanation.cause = Cause::kDivergent;
  return true;
}

}  // namespace

bool read_trainer_loop(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  TrainerPlace odd = place_of(parting.odd, parting.rest);
  TrainerPlace rest = place_of(parting.rest, parting.odd);
  if (odd == TrainerPlace::kUnknown && rest == TrainerPlace::kInEpoch &&
      is_behind_loop_of_framework(examination, parting.rest, parting.odd)) {
    odd = TrainerPlace::kBetweenEpochs;
  } else if (rest == TrainerPlace::kUnknown && odd == TrainerPlace::kInEpoch &&
             is_behind_loop_of_framework(examination, parting.odd, parting.rest)) {
    rest = TrainerPlace::kBetweenEpochs;
  }
  if (odd == TrainerPlace::kInEpoch && rest == odd) {
    return read_lone_call(examination, explanation) || read_omitted_batch(examination, explanation);
  }
  if (odd == TrainerPlace::kUnknown && rest == odd) {
    return read_recorded_stop(examination, explanation);
  }
  if (read_asked_task(examination, explanation)) {
    return true;
  }
  if (odd == TrainerPlace::kUnknown || rest == TrainerPlace::kUnknown || odd == rest ||
      (odd != TrainerPlace::kInEpoch && rest != TrainerPlace::kInEpoch)) {
    return false;
  }
  if (explanation.fork &&
      rank_branch(examination.job, *explanation.fork, parting.odd.ranks, parting.rest.ranks)) {
    return false;
  }
  const Side& in = odd == TrainerPlace::kInEpoch ? parting.odd : parting.rest;
  const Side& out = odd == TrainerPlace::kInEpoch ? parting.rest : parting.odd;
  // A validation at the end of an epoch is in the loop over its batches: the data end it, or a
  // decision of the program's own left the validation's call out.
  if (is_in_another_loop(examination, in, out) == false && hands_over_decisions(examination)) {
    explanation.otherwise = kOrData;
    return false;
  }
  const model::CallSite fit = call_of_trainer(in);
  const Before before = came_from(examination, in, parting.group);
  if (before == Before::kElsewhere) {
    return read_logged(examination, explanation) || read_validation(fit, explanation);
  }
  Explanation by_framework = explanation;
  if (odd == TrainerPlace::kInEpoch) {
    explanation.turn();
  }
  if (read_hook(examination, explanation)) {
    return true;
  }
  if (auto stop = asked_by_user(examination.job, program::TrainerTask::kEnd)) {
    explanation.branch = std::move(stop);
    explanation.otherwise = kOrData;
    explanation.cause = Cause::kDivergent;
    return true;
  }
  if (read_framework_choice(examination, by_framework, Decided::kOwn)) {
    explanation = std::move(by_framework);
    return true;
  }
  explanation.loop =
      LeftLoop{.where = fit, .header = "for batch in train_dataloader", .way_out = std::nullopt};
  explanation.otherwise = before == Before::kUnknown ? kOrHook : std::string_view();
  explanation.cause = Cause::kUneven;
  return true;
}

}  // namespace ddpdoctor::detectors
