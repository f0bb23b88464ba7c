// SPDX-License-Identifier: Apache-2.0
// One thing that can be wrong before a job starts, and the function that looks at it. One file each
// in checks/; the list is generated from the folder.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/preflight/setting.h"

namespace ddpdoctor::preflight {

/// kUnknown: it could not be looked at, which is no reproach. kBreaks: the job will fail or hang.
enum class Level { kOk, kUnknown, kWarning, kBreaks };

/// One observation; `fix` says what to type or change, empty when all is well.
struct Remark {
  Level level = Level::kOk;
  std::string what;
  std::string fix;
};
using Remarks = std::vector<Remark>;

/// Reads and never changes anything; may be slow or hang, since it is run under a deadline
/// (survey.h). No remark = the subject does not concern this job.
struct Check {
  std::string_view name;   // "open-files"
  std::string_view title;  // "Limit of open files"
  Remarks (*look)(const Setting& setting);
};

/// Every check of checks/, by file name. Generated: dropping a file there is enough.
std::span<const Check* const> checks();

std::string_view level_name(Level level);

}  // namespace ddpdoctor::preflight
