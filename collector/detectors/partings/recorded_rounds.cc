// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/recorded_rounds.h"

#include <algorithm>

#include "collector/detectors/paths/call_runs.h"

namespace ddpdoctor::detectors {
namespace {

/// Of all ranks of a side; nothing if they differ.
std::optional<int> calls_made(const graph::Examination& examination, const std::string& group,
                              const model::RankSet& ranks, const model::CallSite& site) {
  std::optional<int> out;
  for (const model::Rank rank : ranks) {
    const int made = calls_made_at(examination, group, rank, site);
    if (out && *out != made) {
      return std::nullopt;
    }
    out = made;
  }
  return out;
}

/// One Python object: its size, then its bytes.
bool is_one_object(const Run& run) {
  return run.size() > 1 && run[0]->dtype == "int64" && run[1]->dtype == "uint8" &&
         run[0]->operation == run[1]->operation;
}

}  // namespace

int calls_made_at(const graph::Examination& examination, const std::string& group, model::Rank rank,
                  const model::CallSite& site) {
  const auto& calls = examination.history.calls(group, rank);
  return static_cast<int>(std::count_if(calls.begin(), calls.end(), [&site](const auto* call) {
    return graph::same_line(call->call_site, site);
  }));
}

std::optional<RecordedRounds> recorded_rounds(const graph::Examination& examination,
                                              const std::string& group, const Side& inside,
                                              const model::RankSet& left) {
  const model::CallSite& site = inside.site();
  if (!site.known()) {
    return std::nullopt;
  }
  const auto more = calls_made(examination, group, inside.ranks, site);
  const auto fewer = calls_made(examination, group, left, site);
  if (!more || !fewer || *more <= *fewer) {
    return std::nullopt;
  }
  return RecordedRounds{.left = *fewer, .inside = *more};
}

bool made_whole_passes(const graph::Examination& examination, const Parting& parting,
                       const Side& in_loop, const Side& out) {
  if (!parting.sequence || in_loop.call == nullptr) {
    return false;
  }
  const auto runs = runs_from(examination.history.calls(parting.group, out.ranks.front()),
                              in_loop.path, *parting.sequence);
  if (runs.empty() || runs.back().empty()) {
    return false;
  }
  const Run& run = runs.back();
  const std::size_t period = period_of(run);
  const std::size_t least = is_one_object(run) ? 2 : 1;
  return period > least && run.size() >= 2 * period && run.size() % period == 0 &&
         same_content(*run.front(), *in_loop.call);
}

}  // namespace ddpdoctor::detectors
