// SPDX-License-Identifier: Apache-2.0
// Renderings of a diagnosis: each a pure function to a string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

struct TextOptions {
  bool colour = false;
  bool native = false;        // show every frame
  bool all_findings = false;  // more than the first three
  std::size_t width = 100;
};

std::string text(const diagnosis::Diagnosis& diagnosis, const TextOptions& options);

/// ddpdoctor.report/1, the only complete rendering.
std::string json(const diagnosis::Diagnosis& diagnosis);

/// One self-contained page, at most about 2 MB; no text of the job can become markup.
std::string html(const diagnosis::Diagnosis& diagnosis);

/// For a pull request or an issue.
std::string markdown(const diagnosis::Diagnosis& diagnosis);

/// GitHub Actions workflow commands: one annotation per finding. Files below `current_folder` are
/// relative to it.
std::string github(const diagnosis::Diagnosis& diagnosis, std::string_view current_folder);

/// Where this repository's files can be read ("https://github.com/OWNER/ddpdoctor/blob/main"), as
/// the build was told (DDPDOCTOR_PAGES); empty where it was not.
std::string_view public_pages();

/// SARIF 2.1.0. Files below `current_folder` are relative URIs, others file:///… Rules link their
/// page below `pages`, if there are any.
std::string sarif(const diagnosis::Diagnosis& diagnosis, std::string_view current_folder,
                  std::string_view pages = public_pages());

/// JUnit XML: one suite, a case for each detector that ran, a failure for each finding.
std::string junit(const diagnosis::Diagnosis& diagnosis);

/// Trace events (JSON) for Perfetto and chrome://tracing: a track for each rank and group, flows
/// between the calls of one collective; at most 400,000 calls, the newest. Times in microseconds.
std::string trace(const diagnosis::Diagnosis& diagnosis);

/// The wait-for graph for Graphviz; the first finding's culprits are filled, cycles are red.
std::string dot(const diagnosis::Diagnosis& diagnosis);

/// "0.1.0"
std::string_view tool_version();

}  // namespace ddpdoctor::viewer
