// SPDX-License-Identifier: Apache-2.0
// The generator of the user that gives a loop its items: the loop ends when the generator returns.
#pragma once

#include <string>
#include <vector>

#include "collector/program/origin/origin.h"

namespace ddpdoctor::program {

/// A `yield` in a function of a known file. The pointers live as long as the sources.
struct Yield {
  const std::string* file = nullptr;
  const SourceText* text = nullptr;
  int line = 0;
  std::string function;  // as frames show it
};

/// The yields behind the `for` at `line`: `for x in self.steps()`, `for x in Stream(path)` whose
/// `__iter__` is a generator, also inside `enumerate` or `tqdm`. Empty if the iterable is not a
/// generator of the user, or if several functions may run.
std::vector<Yield> yields_behind(const SourceText& text, int line, const Sources& sources);

}  // namespace ddpdoctor::program
