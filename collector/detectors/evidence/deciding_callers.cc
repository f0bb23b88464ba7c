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

/// Whether a line is in a function that only passes on; many ranks are at one line.
class PassingOn {
 public:
  explicit PassingOn(const model::JobModel& job) : job_(job) {}

  bool at(const model::CallSite& site) {
    const auto [known, is_new] = known_.try_emplace(site, false);
    if (is_new) {
      known->second = program::hands_on(lines_of(job_, site.file), site.line, site.function);
    }
    return known->second;
  }

 private:
  const model::JobModel& job_;
  std::map<model::CallSite, bool> known_;
};

/// The innermost line that is not in a function which only passes on; unknown if that is its own.
model::CallSite deciding_caller(PassingOn& passing, const graph::Standing& standing) {
  std::size_t depth = 0;
  while (depth + 1 < standing.callers.size() && passing.at(standing.callers[depth])) {
    ++depth;
  }
  return depth == 0 ? model::CallSite{} : standing.callers[depth];
}

}  // namespace

void add_deciding_callers(const graph::Examination& examination, Finding& finding) {
  PassingOn passing(examination.job);
  std::map<model::CallSite, model::RankSet> callers;
  for (const model::Rank rank : finding.culprits.united(finding.waiting)) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing == nullptr || !standing->user.known() || !names(finding, standing->user)) {
      continue;
    }
    const model::CallSite caller = deciding_caller(passing, *standing);
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
