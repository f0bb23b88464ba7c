// SPDX-License-Identifier: Apache-2.0
// One possible problem before a job starts, and the function that checks for it. One file each in
// checks/; the list is generated from the folder.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/preflight/setting.h"

namespace ddpdoctor::preflight {

/// kUnknown: it could not be checked; not a warning. kBreaks: the job will fail or hang.
enum class Level { kOk, kUnknown, kWarning, kBreaks };

/// One result; `fix` says what to type or change, empty if everything is all right.
struct Remark {
  Level level = Level::kOk;
  std::string what;
  std::string fix;
};
using Remarks = std::vector<Remark>;

/// Only reads; may be slow or hang, because it runs under a deadline (survey.h). No remark = the
/// check does not apply to this job.
struct Check {
  std::string_view name;   // "open-files"
  std::string_view title;  // "Limit of open files"
  Remarks (*look)(const Setting& setting);
};

/// Every check in checks/, by file name. Generated: a new file there is enough.
std::span<const Check* const> checks();

std::string_view level_name(Level level);

}  // namespace ddpdoctor::preflight
