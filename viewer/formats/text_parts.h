// SPDX-License-Identifier: Apache-2.0
// The blocks a text report is made of; each ends with a newline or is empty.
#pragma once

#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "viewer/file_names.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

/// True if the finding is an error; false if it is only a warning.
bool is_error(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding);

/// One finding in the form of a compiler error: summary, relevant source lines, why, fix.
std::string finding_block(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                          const FileNames& names, const TextOptions& options);

/// What could not be observed; printed before any verdict.
std::string coverage_block(const model::Coverage& coverage, const TextOptions& options);

/// What other jobs left on this machine; printed after everything about this job.
std::string closing_block(const model::JobModel& job, const TextOptions& options);

/// The one line for a job without problems; empty if findings say everything.
std::string verdict_line(const diagnosis::Diagnosis& diagnosis, const TextOptions& options);

/// Where the main threads of the ranks diverge, outliers first; a list of processes if there are no
/// ranks.
std::string stack_block(const diagnosis::Diagnosis& diagnosis, const FileNames& names,
                        const TextOptions& options);

/// Every frame of every thread of every process.
std::string thread_dump(const model::JobModel& job, const FileNames& names,
                        const TextOptions& options);

/// The source line of a place, trimmed and printable; empty if it is unknown.
std::string source_text(const model::JobModel& job, std::string_view file, int line);

}  // namespace ddpdoctor::viewer
