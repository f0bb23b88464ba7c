// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/blocks.h"

#include <algorithm>

#include "collector/program/questions/expressions.h"
#include "collector/python_source/rank_words.h"

namespace ddpdoctor::python_source {

std::optional<Block> rank_decorator(const Lines& lines, int line) {
  for (Block& decorator : program::decorators_of(lines, line)) {
    const auto words = program::words_in(decorator.condition);
    if (std::any_of(words.begin(), words.end(), is_rank_decorator)) {
      return std::move(decorator);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::python_source
