// SPDX-License-Identifier: Apache-2.0
// A spool folder after the fact: what the rings of a run that is over (or was itself killed) still
// tell.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::monitor {

/// Whether a folder has a *.ring file.
bool holds_rings(const std::string& folder);

/// The job of a spool; unreadable rings among readable ones become warnings of its coverage.
base::Result<model::JobModel> job_of_spool(const std::string& folder);

}  // namespace ddpdoctor::monitor
