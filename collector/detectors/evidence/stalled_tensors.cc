// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/stalled_tensors.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

/// Ranks that submitted the same tensors.
struct TensorSide {
  model::RankSet ranks;
  std::vector<std::string> submitted;
  std::vector<std::string> lacking;
};

std::vector<TensorSide> sides_of(const model::JobModel& job) {
  std::map<std::vector<std::string>, TensorSide> sides;
  for (const model::Fact* fact : model::facts(job, std::string(model::kStalledTensors))) {
    std::vector<std::string> key = fact->list("submitted");
    const auto lacking = fact->list("lacking");
    key.insert(key.end(), lacking.begin(), lacking.end());
    TensorSide& side = sides[key];
    side.submitted = fact->list("submitted");
    side.lacking = lacking;
    if (fact->rank) {
      side.ranks.insert(*fact->rank);
    }
  }
  std::vector<TensorSide> out;
  for (auto& [key, side] : sides) {
    out.push_back(std::move(side));
  }
  std::stable_sort(out.begin(), out.end(), [](const TensorSide& one, const TensorSide& two) {
    return one.ranks.size() < two.ranks.size();
  });
  return out;
}

/// Begin and end of a long name: scopes differ at the begin, operations at the end.
std::string quoted_tensor(const std::string& name) {
  constexpr std::size_t kShort = 72;
  constexpr std::size_t kHalf = 34;
  return name.size() <= kShort
             ? fmt::format("`{}`", name)
             : fmt::format("`{}…{}`", name.substr(0, kHalf), name.substr(name.size() - kHalf));
}

std::size_t common_ends(const std::string& one, const std::string& two) {
  const std::size_t shorter = std::min(one.size(), two.size());
  std::size_t begin = 0;
  while (begin < shorter && one[begin] == two[begin]) {
    ++begin;
  }
  std::size_t end = 0;
  while (end < shorter - begin && one[one.size() - 1 - end] == two[two.size() - 1 - end]) {
    ++end;
  }
  return begin + end;
}

/// The two names with the longest common ends: probably one tensor under two names.
std::pair<std::string, std::string> nearest_names(const TensorSide& side) {
  std::pair<std::string, std::string> best = {side.submitted.front(), side.lacking.front()};
  for (const std::string& one : side.submitted) {
    for (const std::string& two : side.lacking) {
      if (common_ends(one, two) > common_ends(best.first, best.second)) {
        best = {one, two};
      }
    }
  }
  return best;
}

}  // namespace

std::optional<Finding> different_tensors(const model::JobModel& job, std::string_view kind) {
  const std::vector<TensorSide> sides = sides_of(job);
  const bool told =
      sides.size() > 1 && std::all_of(sides.begin(), sides.end(), [](const auto& one) {
        return !one.submitted.empty() && !one.lacking.empty();
      });
  if (!told) {
    return std::nullopt;
  }
  model::RankSet all;
  for (const TensorSide& side : sides) {
    all = all.united(side.ranks);
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kLikely;
  const model::RankSet& most = sides.back().ranks;
  finding.culprits = 2 * most.size() > all.size() ? all.minus(most) : model::RankSet{};
  finding.waiting = all.minus(finding.culprits);
  const TensorSide& first = sides.front();
  const auto [own, theirs] = nearest_names(first);
  const bool two = sides.size() == 2;
  finding.summary = fmt::format(
      "{} submitted {} to Horovod, and {} {}; each side waits until the other submits the same "
      "name",
      said(first.ranks), quoted_tensor(own), two ? said(most) : "other ranks",
      quoted_tensor(theirs));
  constexpr std::size_t kMostSidesTold = 4;
  for (std::size_t i = 0; i < std::min(sides.size(), kMostSidesTold); ++i) {
    finding.evidence.push_back(
        {.rank = sides[i].ranks.values().front(),
         .text = fmt::format("log: {} submitted {} and not {}", said(sides[i].ranks),
                             quoted_tensor(sides[i].submitted.front()),
                             quoted_tensor(sides[i].lacking.front()))});
  }
  // One tensor under two names has a long part in common; otherwise these are two calls.
  const bool alike = 3 * common_ends(own, theirs) > 2 * std::min(own.size(), theirs.size());
  finding.fix =
      alike ? "Give tensors, variables and scopes the same names on every rank: Horovod pairs "
              "tensors by name."
            : "Submit the same tensors in the same order on every rank. Move a call that only some "
              "ranks make (inside `if hvd.rank() == 0`, in a callback) to all ranks.";
  return finding;
}

}  // namespace ddpdoctor::detectors
