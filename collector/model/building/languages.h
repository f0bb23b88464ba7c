// SPDX-License-Identifier: Apache-2.0
// Which of the source files are Python, the only language that is parsed.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// A file that native frames name, and no frame of Python, has no structure: its lines are shown,
/// and nothing is concluded from them. Call it before the sources are parsed.
void mark_languages(const JobModel& job);

}  // namespace ddpdoctor::model
