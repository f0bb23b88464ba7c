// SPDX-License-Identifier: Apache-2.0
// The state of the job as text in Prometheus's format.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "collector/fleet/job_state.h"

namespace ddpdoctor::fleet {

/// `findings`: how often each kind was reported.
std::string metrics(const JobState& state, const std::string& job, double now,
                    const std::map<std::string, std::uint64_t>& findings);

}  // namespace ddpdoctor::fleet
