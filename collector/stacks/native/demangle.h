// SPDX-License-Identifier: Apache-2.0
// Native function names in readable form: no parameter lists, no template arguments, no clone
// suffixes.
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::stacks {

/// Short readable form of a mangled or plain name, at most about 200 bytes of printable text.
std::string readable_function(std::string_view mangled);

/// "void c10d::f<int>(c10d::Work&) const" → "c10d::f"; pybind11's wrapper around a bound function
/// becomes "pybind11 binding of NAME".
std::string folded_name(std::string_view demangled);

}  // namespace ddpdoctor::stacks
