// SPDX-License-Identifier: Apache-2.0
// Warnings and progress for the person at the terminal: always stderr, never stdout.
#pragma once

#include <string_view>

namespace ddpdoctor::base {

/// Prints "ddpdoctor: warning: …" on stderr.
void warn(std::string_view message);

/// Prints "ddpdoctor: …" on stderr; shown only when stderr is a terminal or DDPDOCTOR_VERBOSE is
/// set.
void progress(std::string_view message);

}  // namespace ddpdoctor::base
