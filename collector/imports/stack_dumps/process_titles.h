// SPDX-License-Identifier: Apache-2.0
// Process titles of serving frameworks and Ray, which replace the command line in ps and py-spy:
// "sglang::scheduler_TP0_PP1", "VLLM::Worker_TP2", "ray::WorkerDict.update_actor", "pt_elastic".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/imports/coordinates.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The role that such a title gives; absent if the command is not a title.
std::optional<model::Role> role_of_title(const std::vector<std::string>& command);

/// {"TP": 0, "PP": 1}; empty if the title has none.
Coordinates place_of_title(const std::vector<std::string>& command);

/// Gives ranks to processes without a rank whose titles contain their coordinates. Reports which
/// ones.
void name_by_titles(model::JobModel& job);

}  // namespace ddpdoctor::imports
