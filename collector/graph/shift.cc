// SPDX-License-Identifier: Apache-2.0
// Libraries match collectives by order: an extra call is matched with the others' next call, and
// all later ones are off by one. The lines of the calls show where that began.
#include <algorithm>

#include "collector/graph/comparison.h"
#include "collector/graph/divergence.h"

namespace ddpdoctor::graph {
namespace {

// Calls compared after a difference: enough to distinguish a shift from chance, few enough for
// rings of 256 entries.
constexpr std::size_t kFollowed = 8;

// Calls that one branch may add: a forward can broadcast several sets of buffers.
constexpr std::size_t kLongestShift = 16;

enum class Agreement { kUnknown, kYes, kNo };

// `by_callers`: the lines of the calls are the same; only their callers differ.
Agreement same_place(const model::CollectiveCall* a, const model::CollectiveCall* b,
                     bool by_callers) {
  if (a == nullptr || b == nullptr || !a->call_site.known() || !b->call_site.known()) {
    return Agreement::kUnknown;
  }
  const bool alike = same_line(a->call_site, b->call_site) && a->operation == b->operation &&
                     (!by_callers || same_callers(*a, *b));
  return alike ? Agreement::kYes : Agreement::kNo;
}

// Compares the calls of one rank from `ours` on with those of the other from `theirs` on.
Agreement goes_on_alike(const Calls& ours, std::size_t our_start, const Calls& theirs,
                        std::size_t their_start, bool by_callers) {
  Agreement result = Agreement::kUnknown;
  for (std::size_t i = 0; i < kFollowed; ++i) {
    if (our_start + i >= ours.size() || their_start + i >= theirs.size()) {
      break;
    }
    const Agreement one = same_place(ours[our_start + i], theirs[their_start + i], by_callers);
    if (one == Agreement::kNo) {
      return Agreement::kNo;
    }
    result = one == Agreement::kYes ? one : result;
  }
  return result;
}

std::size_t index_of(const Calls& calls, std::int64_t sequence) {
  const auto found = std::lower_bound(calls.begin(), calls.end(), sequence,
                                      [](const model::CollectiveCall* call, std::int64_t wanted) {
                                        return call->sequence < wanted;
                                      });
  return static_cast<std::size_t>(found - calls.begin());
}

}  // namespace

Shift shift_between(const History& history, const std::string& group, std::int64_t sequence,
                    model::Rank rank, model::Rank other) {
  const Calls& ours = history.calls(group, rank);
  const Calls& theirs = history.calls(group, other);
  const std::size_t our = index_of(ours, sequence);
  const std::size_t their = index_of(theirs, sequence);
  if (our >= ours.size() || their >= theirs.size()) {
    return Shift::kUnknown;
  }
  const bool by_callers = same_place(ours[our], theirs[their], false) == Agreement::kYes;
  const auto alike = [&](std::size_t ours_by, std::size_t theirs_by) {
    return goes_on_alike(ours, our + ours_by, theirs, their + theirs_by, by_callers) ==
           Agreement::kYes;
  };
  for (std::size_t by = 1; by <= kLongestShift; ++by) {
    if (alike(by, 0)) {
      return Shift::kExtra;
    }
    if (alike(0, by)) {
      return Shift::kSkipped;
    }
    if (by == 1 && alike(1, 1)) {
      return Shift::kReplaced;
    }
  }
  return Shift::kUnknown;
}

}  // namespace ddpdoctor::graph
