// SPDX-License-Identifier: Apache-2.0
// Values that a function gets from its callers: `def section(name, fence=False)`, `if fence:`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

inline constexpr std::size_t kByKeywordOnly = static_cast<std::size_t>(-1);

/// A parameter as its callers see it: of a class's __init__ the callee is the class.
struct PassedParameter {
  std::string callee;
  std::string name;
  std::size_t place = kByKeywordOnly;  // among the arguments of a call, without self
};

/// The parameters that a condition at `line` reads, itself (`fence`) or by an attribute that a
/// method of the same file sets to its parameter (`self.fence = fence`).
std::vector<PassedParameter> parameters_behind(std::string_view condition, const SourceText& text,
                                               int line);

/// What a call passes, and where it is.
struct Argument {
  std::string text;
  int line = 0;
  int last_line = 0;  // of the statement
};

/// What the calls in this file pass for a parameter; calls that leave it out pass nothing.
std::vector<Argument> arguments_for(const PassedParameter& parameter, const SourceText& text);

}  // namespace ddpdoctor::program
