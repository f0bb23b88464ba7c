// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/deciding_callers.h"

#include <algorithm>
#include <map>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/hands_on.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMost = 3;

bool names(const Finding& finding, const model::CallSite& site) {
  return std::any_of(finding.locations.begin(), finding.locations.end(), [&site](const auto& one) {
    return one.file == site.file && one.line == site.line;
  });
}

/// The innermost line that is not in a function which only passes on; unknown if that is its own.
model::CallSite deciding_caller(const model::JobModel& job, const graph::Standing& standing) {
  std::size_t depth = 0;
  while (depth + 1 < standing.callers.size()) {
    const model::CallSite& site = standing.callers[depth];
    if (!program::hands_on(lines_of(job, site.file), site.line, site.function)) {
      break;
    }
    ++depth;
  }
  return depth == 0 ? model::CallSite{} : standing.callers[depth];
}

}  // namespace

void add_deciding_callers(const graph::Examination& examination, Finding& finding) {
  std::map<model::CallSite, model::RankSet> callers;
  for (const model::Rank rank : finding.culprits.united(finding.waiting)) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing == nullptr || !standing->user.known() || !names(finding, standing->user)) {
      continue;
    }
    const model::CallSite caller = deciding_caller(examination.job, *standing);
    if (caller.known() && !names(finding, caller)) {
      callers[caller].insert(rank);
    }
  }
  std::size_t added = 0;
  for (const auto& [site, ranks] : callers) {
    if (added++ < kMost) {
      finding.locations.push_back(
          location(site, ranks, ranks_do(ranks, "is inside this call", "are inside this call")));
    }
  }
}

}  // namespace ddpdoctor::detectors
