// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/call_runs.h"

#include <algorithm>

namespace ddpdoctor::detectors {

using graph::Calls;
using model::CollectiveCall;

bool same_path(const Path& a, const Path& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), graph::same_line);
}

bool same_content(const CollectiveCall& a, const CollectiveCall& b) {
  return a.operation == b.operation && a.count == b.count && a.shape == b.shape;
}

std::vector<Run> runs_from(const Calls& calls, const Path& path, std::int64_t sequence) {
  const auto end = std::lower_bound(
      calls.begin(), calls.end(), sequence,
      [](const CollectiveCall* call, std::int64_t wanted) { return call->sequence < wanted; });
  const auto known = static_cast<std::size_t>(end - calls.begin());
  auto call = end - static_cast<std::ptrdiff_t>(std::min(known, kMostRead));
  std::vector<Run> runs(1);
  bool begun = call != end && (*call)->sequence == 1;
  for (; call != end; ++call) {
    if (same_path(graph::callers_of(**call), path)) {
      runs.back().push_back(*call);
      continue;
    }
    if (!begun) {
      runs.back().clear();
    }
    begun = true;
    if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  return runs;
}

bool begins_alike(const Run& a, const Run& b) {
  const std::size_t common = std::min(a.size(), b.size());
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin(),
                    [](const CollectiveCall* one, const CollectiveCall* other) {
                      return same_content(*one, *other);
                    });
}

std::size_t period_of(const Run& run) {
  for (std::size_t period = 1; period < run.size(); ++period) {
    bool repeats = run.size() % period == 0;
    for (std::size_t i = period; repeats && i < run.size(); ++i) {
      repeats = same_content(*run[i], *run[i - period]);
    }
    if (repeats) {
      return period;
    }
  }
  return run.size();
}

}  // namespace ddpdoctor::detectors
