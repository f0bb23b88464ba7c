// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/gradient_hook.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::Dependence;

/// The path to the hook's call for which a thread in backward waits; empty if no hook made it.
Path way_of_hook(const Side& side) {
  Path way = side.call == nullptr ? Path{} : graph::callers_of(*side.call);
  const bool on_the_stack =
      !way.empty() && std::any_of(side.path.begin(), side.path.end(), [&way](const auto& site) {
        return site.file == way.front().file && site.function == way.front().function;
      });
  const bool waits = side.activity() == graph::Activity::kDdpBackward;
  return waits && !side.path.empty() && !on_the_stack ? way : Path{};
}

std::optional<Branch> own_condition(const model::JobModel& job, const Path& way) {
  for (const model::CallSite& site : way) {
    const program::SourceText& lines = lines_of(job, site.file);
    for (const Block& block : program::deciding_branches(lines, site.line)) {
      if (!is_loop(block) && dependence_of(job, lines, block) == Dependence::kData) {
        return branch_of(block, site, Dependence::kData, false);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool read_gradient_hook(const graph::Examination& examination, Explanation& explanation) {
  Explanation turned = explanation;
  if (way_of_hook(turned.parting.rest).empty()) {
    turned.turn();
  }
  const Parting& parting = turned.parting;
  const bool both = !way_of_hook(parting.odd).empty();
  auto branch = both ? std::nullopt : own_condition(examination.job, way_of_hook(parting.rest));
  if (!branch || parting.shifted || parting.odd.activity() == graph::Activity::kDdpBackward) {
    return false;
  }
  const bool skipped_by_most = parting.odd.ranks.size() > parting.rest.ranks.size();
  turned.branch = std::move(branch);
  turned.otherwise = kOrBatches;
  turned.cause = Cause::kDivergent;
  if (skipped_by_most) {
    turned.turn();
  }
  explanation = std::move(turned);
  return true;
}

}  // namespace ddpdoctor::detectors
