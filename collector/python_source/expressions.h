// SPDX-License-Identifier: Apache-2.0
// Calls, names and values in the text of one statement or expression, under the names that their
// users know.
#pragma once

#include <string_view>
#include <vector>

#include "collector/program/questions/expressions.h"

namespace ddpdoctor::python_source {

using program::Call;
using program::calls_in;
using program::changes;
using program::comprehension_calling;
using program::last_name;
using program::values_read;
using program::variables_asked;
using program::words_in;
using program::words_yielded;

inline std::vector<std::string_view> arguments_of(std::string_view /*text*/, const Call& call) {
  return call.arguments;
}

}  // namespace ddpdoctor::python_source
