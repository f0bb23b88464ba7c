// SPDX-License-Identifier: Apache-2.0
// What calls pass for a parameter, including the calls that a library makes:
// `threading.Thread(target=work, args=(queue,))`.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "collector/program/origin/definitions.h"

namespace ddpdoctor::program {

inline constexpr std::size_t kNoParameter = static_cast<std::size_t>(-1);

/// A parameter of a function of the user.
struct ParameterOf {
  const File& file;
  std::size_t scope = 0;  // of the function
  std::size_t index = 0;
};

/// kNoParameter if the function has no parameter of this name.
std::size_t number_of(const Scope& scope, std::string_view name);
bool is_method(const File& file, std::size_t scope);

/// The argument of a call for a parameter; `skipped`: parameters that the call does not pass
/// (self).
Node argument_for(Node call, const Scope& scope, std::size_t index, std::size_t skipped);
/// Items of `args=(a, b)`.
std::vector<Node> tuple_argument(Node call, std::string_view keyword);

/// The argument of a call for the parameter; no node if the call passes none. `calls` becomes false
/// if it calls something else.
Node argument_passed(const Files& files, const ParameterOf& parameter, const CallIn& call,
                     const File& from, bool& calls);

/// An expression and its place.
struct Passed {
  Node node;
  const File* file = nullptr;
  std::size_t scope = 0;
};

/// What all known calls pass for the parameter; a call that leaves it out passes its default.
std::vector<Passed> all_passed(const Files& files, const ParameterOf& parameter);

}  // namespace ddpdoctor::program
