// SPDX-License-Identifier: Apache-2.0
// Python sources for the tests of this folder: lines are found by their text.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The text from line 1; a newline right after R"( is not counted.
inline SourceText source(std::string_view text) {
  if (text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  SourceText out;
  int number = 1;
  for (const std::string_view line : base::split(text, '\n')) {
    out[number++] = std::string(line);
  }
  return out;
}

/// The first line that contains `part`.
inline int line_with(const SourceText& text, std::string_view part) {
  for (const auto& [number, line] : text) {
    if (line.find(part) != std::string::npos) {
      return number;
    }
  }
  ADD_FAILURE() << "no line with " << part;
  return 0;
}

/// Only the lines that contain one of `parts`, as in a recording that has only some lines.
inline SourceText only(const SourceText& text, std::initializer_list<std::string_view> parts) {
  SourceText out;
  for (const std::string_view part : parts) {
    const int line = line_with(text, part);
    out[line] = text.at(line);
  }
  return out;
}

}  // namespace ddpdoctor::program
