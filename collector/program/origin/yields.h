// SPDX-License-Identifier: Apache-2.0
// Finds the user's generator that a loop iterates over: the loop ends when the generator returns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/origin/definitions.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

/// A `yield` in a function of a known file. The pointers are valid as long as the sources exist.
struct Yield {
  const std::string* file = nullptr;
  const SourceText* text = nullptr;
  int line = 0;
  std::string function;    // name as in stack frames
  bool delegates = false;  // `yield from`
};

/// The yields of the generator that the `for` at `line` iterates over: `self.steps()`, or
/// `Stream(path)` with a generator as `__iter__`, also inside `enumerate` or `tqdm`. Empty if the
/// iterable is not a generator of the user, or if several functions may run.
std::vector<Yield> yields_behind(const SourceText& text, int line, const Sources& sources);

/// The same for any other iterable, given as an expression.
std::vector<Yield> yields_behind(std::string_view iterable, const Asked& asked,
                                 const Sources& sources);

/// The expressions that a generator function yields.
std::vector<Node> yielded_by(const File& file, const Scope& function);

}  // namespace ddpdoctor::program
