// SPDX-License-Identifier: Apache-2.0
// Python sources for the tests of questions: lines are found by what stands on them, never by
// number.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::program {

using Lines = SourceText;

/// The text from line 1; a newline right after R"( is not counted.
inline Lines lines_of(std::string_view text) {
  if (text.starts_with('\n')) {
    text.remove_prefix(1);
  }
  Lines out;
  int number = 1;
  for (const std::string_view line : base::split(text, '\n')) {
    out[number++] = std::string(line);
  }
  return out;
}

/// The first line that contains `part`.
inline int line_with(const Lines& lines, std::string_view part) {
  for (const auto& [number, text] : lines) {
    if (text.find(part) != std::string::npos) {
      return number;
    }
  }
  ADD_FAILURE() << "no line with " << part;
  return 0;
}

/// "if rank == 0 | def main()": the headers, for comparing.
inline std::string texts(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    out += (out.empty() ? "" : " | ") + block.text;
  }
  return out;
}

inline std::string conditions(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    out += (out.empty() ? "" : " | ") + block.condition;
  }
  return out;
}

}  // namespace ddpdoctor::program
