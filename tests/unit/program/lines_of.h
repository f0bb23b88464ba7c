// SPDX-License-Identifier: Apache-2.0
// Python sources for the tests of questions: lines are found by their text, never by number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/questions/blocks.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {

using Lines = SourceText;

inline Lines lines_of(std::string_view text) {
  return source(text);
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
