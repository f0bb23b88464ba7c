// SPDX-License-Identifier: Apache-2.0
// What an expression depends on, followed through the assignments of one file.
#pragma once

#include "collector/python_source/blocks.h"
#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {

/// `at` is the statement whose names are meant.
Dependence dependence_of(const Structure& structure, Tokens expression, std::size_t at);

/// Parses `condition` and asks the same.
Dependence dependence_of(const Structure& structure, std::string_view condition, std::size_t at);

}  // namespace ddpdoctor::python_source
