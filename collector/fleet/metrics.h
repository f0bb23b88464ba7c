// SPDX-License-Identifier: Apache-2.0
// The state of the job as numbers, for systems that store and draw them (metrics_text.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/fleet/job_state.h"

namespace ddpdoctor::fleet {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

struct Sample {
  Labels labels;
  double value = 0;
};

/// One metric. A counter only grows while the job runs.
struct Metric {
  std::string_view name;
  bool counter = false;
  std::string_view help;
  std::vector<Sample> samples{};
};

/// `findings`: how often each kind was reported.
std::vector<Metric> metrics(const JobState& state, const std::string& job, double now,
                            const std::map<std::string, std::uint64_t>& findings);

}  // namespace ddpdoctor::fleet
