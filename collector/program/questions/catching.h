// SPDX-License-Identifier: Apache-2.0
// The exceptions that an except clause catches.
#pragma once

#include <string_view>
#include <vector>

#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// The exceptions that an expression names, without modules: "Empty" of (OSError, queue.Empty).
std::vector<std::string_view> exceptions_in(Node expression);

/// The exceptions of a clause; empty for a bare `except:`.
std::vector<std::string_view> caught_by(const Code& code, std::size_t clause);

/// StopIteration, queue.Empty, EOFError: exceptions that mean "no more data".
bool is_end_of_data(std::string_view exception);

}  // namespace ddpdoctor::program
