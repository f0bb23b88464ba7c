// SPDX-License-Identifier: Apache-2.0
// The one place of a finding that formats with a single location can name.
#pragma once

#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// A file and a line; 0: the line is unknown. Without a file the finding has no place.
struct MainPlace {
  std::string file;
  int line = 0;
};

/// The finding's first location that has a file. No place is made up for a finding without one.
MainPlace main_place(const detectors::Finding& finding);

/// `path` without `folder/` when it lies below it; otherwise as it is.
std::string_view relative_to(std::string_view path, std::string_view folder);

/// A URI reference: relative to `folder` when below it, else file:///…; reserved characters
/// percent-encoded.
std::string uri(std::string_view path, std::string_view folder);

}  // namespace ddpdoctor::viewer
