// SPDX-License-Identifier: Apache-2.0
// Where names get their values.
#pragma once

#include <string>
#include <vector>

#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {

/// One binding of a name: the expression it comes from and the statement that binds it.
struct Assignment {
  Tokens value;
  std::size_t statement = kNowhere;
};

/// Bindings of `name` ("stop", "self.is_main") by =, :=, += and for, in the function `function`
/// (kNowhere: at module level). Attributes are looked for in the whole file.
std::vector<Assignment> assignments_of(const Structure& structure, std::string_view name,
                                       std::size_t function);

/// What `def name` returns, wherever in the file it is defined.
std::vector<Assignment> returns_of(const Structure& structure, std::string_view name);

}  // namespace ddpdoctor::python_source
