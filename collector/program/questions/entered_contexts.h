// SPDX-License-Identifier: Apache-2.0
// The contexts that `with` statements enter, and the user's functions that run for them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collector/program/origin/slicer.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// Calls `each` for every expression that the `with` at this statement of the file enters.
void each_entered(const Code& code, std::size_t with, const File& file,
                  const std::function<void(Node entered, const Where& where)>& each);

/// A function as lines of a file.
struct FunctionLines {
  std::string file;
  int first = 0;
  int last = 0;
};

/// The user's functions that are called or entered by the `with` statements around a line:
/// `__enter__` of an object, the generator of a contextmanager.
std::vector<FunctionLines> entered_around(const SourceText& text, int line, const Sources& sources);

}  // namespace ddpdoctor::program
