// SPDX-License-Identifier: Apache-2.0
// The blocks a text report is made of; each ends with a newline or is empty.
#pragma once

#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "viewer/file_names.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {

/// Is this finding something that has gone wrong, or something to look at?
bool is_error(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding);

/// A piece of evidence with the rank it is about.
std::string reason_text(const detectors::Evidence& evidence);

/// One finding as a compiler would say it: summary, the source lines that matter, why, fix.
std::string finding_block(const diagnosis::Diagnosis& diagnosis, const detectors::Finding& finding,
                          const FileNames& names, const TextOptions& options);

/// What could not be observed, said before any verdict.
std::string coverage_block(const model::Coverage& coverage, const TextOptions& options);

/// The one line for a job of which nothing is to be found fault with; empty when findings say it
/// all.
std::string verdict_line(const diagnosis::Diagnosis& diagnosis, const TextOptions& options);

/// Where the main threads of the ranks part, outliers first; processes one by one when nothing is a
/// rank.
std::string stack_block(const diagnosis::Diagnosis& diagnosis, const FileNames& names,
                        const TextOptions& options);

/// Every frame of every thread of every process.
std::string thread_dump(const model::JobModel& job, const FileNames& names,
                        const TextOptions& options);

/// The source line of a place, trimmed and printable; empty when it is not known.
std::string source_text(const model::JobModel& job, std::string_view file, int line);

}  // namespace ddpdoctor::viewer
