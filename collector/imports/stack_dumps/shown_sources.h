// SPDX-License-Identifier: Apache-2.0
// Source lines that a session shows beside its dump: `sed -n 145p FILE`, `sed -n '140,150p' FILE`.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Adds the lines of files in which a Python frame of the job is.
void read_shown_sources(std::span<const std::string_view> lines, model::JobModel& job);

}  // namespace ddpdoctor::imports
