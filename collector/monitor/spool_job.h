// SPDX-License-Identifier: Apache-2.0
// Reads a spool folder afterwards: the rings of a run that has ended or was itself killed.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// True if a folder contains a *.ring file.
bool holds_rings(const std::string& folder);

/// The job of a spool; unreadable rings among readable ones become warnings of its coverage.
base::Result<model::JobModel> job_of_spool(const std::string& folder);

}  // namespace ddpdoctor::monitor
