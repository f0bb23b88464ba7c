// SPDX-License-Identifier: Apache-2.0
// ddpdoctor.capture/1 JSON ↔ JobModel. The text may be untrusted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Every field is optional; a wrong type is an error that names the field's path. `name` is the
/// file name for messages.
base::Result<model::JobModel> read_capture(std::string_view json, const std::string& name);

std::string write_capture(const model::JobModel& job);

}  // namespace ddpdoctor::imports
