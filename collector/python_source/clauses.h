// SPDX-License-Identifier: Apache-2.0
// The except clauses of a try, and what they catch.
#pragma once

#include <string_view>
#include <vector>

#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {

/// The `except` headers of a try, in order.
std::vector<std::size_t> except_clauses(const Structure& structure, std::size_t a_try);

/// The exceptions a clause names, without their modules; empty for a bare `except:`.
std::vector<std::string_view> caught_by(const Structure& structure, std::size_t clause);

/// StopIteration, queue.Empty, EOFError: says that there is no more.
bool is_end_of_data(std::string_view exception);

}  // namespace ddpdoctor::python_source
