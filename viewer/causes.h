// SPDX-License-Identifier: Apache-2.0
// The catalogue for people: the list, one page, and the whole as a document. Generated from the
// detectors.
#pragma once

#include <string>

#include "collector/detectors/detector.h"

namespace ddpdoctor::viewer {

/// Every kind with its title, grouped by effect on a job.
std::string causes_list();

/// One cause for the terminal.
std::string cause_page(const detectors::Detector& detector);

/// The same as Markdown, without the heading.
std::string explanation_markdown(const detectors::Detector& detector);

/// docs/causes.md.
std::string causes_markdown();

}  // namespace ddpdoctor::viewer
