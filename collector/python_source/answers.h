// SPDX-License-Identifier: Apache-2.0
// A helper that answers None where it caught an exception, and a caller that leaves out the rest
// when it does: one step skipped, told in two functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/python_source/blocks.h"

namespace ddpdoctor::python_source {

/// `loss = self.loss(x)`, `if loss is None: return`.
struct NoneTest {
  Block test;
  std::string helper;  // "loss": the function whose answer is tested
};

/// Tests of a helper's answer that `line` was reached past, in its function: early exits before it,
/// and `if loss is not None:` around it; the nearest first.
std::vector<NoneTest> none_tests_before(const Lines& lines, int line);

/// The except clause of `def name` that ends with `return None`, and is for failures; nothing where
/// there is none.
std::optional<Block> clause_that_answers_none(const Lines& lines, std::string_view name);

}  // namespace ddpdoctor::python_source
