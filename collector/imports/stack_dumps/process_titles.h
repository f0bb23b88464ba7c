// SPDX-License-Identifier: Apache-2.0
// What serving frameworks and Ray write over their command line, so that ps and py-spy show it:
// "sglang::scheduler_TP0_PP1", "VLLM::Worker_TP2", "ray::WorkerDict.update_actor", "pt_elastic".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/imports/coordinates.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// What such a title says its process is; absent where the command is no title.
std::optional<model::Role> role_of_title(const std::vector<std::string>& command);

/// {"TP": 0, "PP": 1}; empty where the title has none.
Coordinates place_of_title(const std::vector<std::string>& command);

/// Gives ranks to processes whose titles name their place in the layout and that have none. Says
/// which ones.
void name_by_titles(model::JobModel& job);

}  // namespace ddpdoctor::imports
