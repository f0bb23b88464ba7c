// SPDX-License-Identifier: Apache-2.0
// ddpdoctor.capture/1 JSON ↔ JobModel. It may come from anybody: a trust boundary.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Every field may be absent; wrong types are refused with the field's path in the error. `name` is
/// the file for messages.
base::Result<model::JobModel> read_capture(std::string_view json, const std::string& name);

std::string write_capture(const model::JobModel& job);

}  // namespace ddpdoctor::imports
