// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/trainer_loop.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/detectors/call_sites/libraries.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kOrData =
    "Ranks whose data end at different steps would look alike: compare their batches.";

/// Ranks ask each other somewhere in this function.
bool agrees(const python_source::Lines& lines, int line) {
  constexpr std::array<std::string_view, 4> kAgree = {"reduce", "broadcast", "gather", "barrier"};
  const auto extent = python_source::function_extent(lines, line);
  for (auto at = lines.lower_bound(extent ? extent->first : line);
       at != lines.end() && at->first <= (extent ? extent->second : line); ++at) {
    if (std::any_of(kAgree.begin(), kAgree.end(), [&at](std::string_view word) {
          return at->second.find(word) != std::string::npos;
        })) {
      return true;
    }
  }
  return false;
}

/// The test under which the user's code asks the trainer to stop.
std::optional<Branch> own_stop(const model::JobModel& job) {
  constexpr std::string_view kStop = ".should_stop = ";
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [line, text] : lines) {
      if (text.find(kStop) == std::string::npos || text.find("False") != std::string::npos ||
          !model::is_user_file(file) || agrees(lines, line)) {
        continue;
      }
      for (const python_source::Block& block : python_source::deciding_branches(lines, line)) {
        const auto on = dependence_of(lines, block);
        if (!is_loop(block) && on == python_source::Dependence::kData &&
            !is_uniform(block.condition)) {
          const model::CallSite site = {
              .file = file, .line = line, .function = function_around(lines, line)};
          return branch_of(block, site, on, true);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool read_trainer_loop(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const TrainerPlace odd = place_in_trainer(parting.odd.standing);
  const TrainerPlace rest = place_in_trainer(parting.rest.standing);
  if (odd == TrainerPlace::kUnknown || rest == TrainerPlace::kUnknown || odd == rest ||
      (odd != TrainerPlace::kInEpoch && rest != TrainerPlace::kInEpoch)) {
    return false;
  }
  if (explanation.fork &&
      rank_branch(examination.job, *explanation.fork, parting.odd.ranks, parting.rest.ranks)) {
    return false;
  }
  if (odd == TrainerPlace::kInEpoch) {
    explanation.turn();
  }
  if (auto stop = own_stop(examination.job)) {
    explanation.branch = std::move(stop);
    explanation.otherwise = kOrData;
    explanation.cause = Cause::kDivergent;
    return true;
  }
  const Path& path = explanation.parting.rest.path;
  explanation.loop = LeftLoop{.where = path.empty() ? model::CallSite{} : path.front(),
                              .header = "for batch in train_dataloader",
                              .way_out = std::nullopt};
  explanation.cause = Cause::kUneven;
  return true;
}

}  // namespace ddpdoctor::detectors
