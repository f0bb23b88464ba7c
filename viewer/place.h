// SPDX-License-Identifier: Apache-2.0
// The main place of a finding, for formats with a single location.
#pragma once

#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// A file and a line; 0: the line is unknown. A finding without a file has no place.
struct MainPlace {
  std::string file;
  int line = 0;
};

/// The finding's first location with a file; empty if there is none.
MainPlace main_place(const detectors::Finding& finding);

/// `path` relative to `folder` if it is below it; otherwise unchanged.
std::string_view relative_to(std::string_view path, std::string_view folder);

/// A URI reference: relative to `folder` if below it, else file:///…; reserved characters are
/// percent-encoded.
std::string uri(std::string_view path, std::string_view folder);

}  // namespace ddpdoctor::viewer
