// SPDX-License-Identifier: Apache-2.0
// Errors for invalid command lines: one sentence that names the word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// Prints "ddpdoctor: WHAT" and, on its own line, the hint; untrusted parts are made printable.
void print_error(const base::Error& error);

/// The words that a user who typed `typed` may have meant, the most similar first, at most five.
std::vector<std::string_view> near(std::string_view typed,
                                   const std::vector<std::string_view>& words);

/// Refuses words that neither the program nor the chosen command accepts.
base::Result<void> check_leftovers(const CLI::App& app);

/// CLI11's report of a missing or non-numeric option value, in our words: "--output needs FILE".
base::Error in_our_words(const CLI::App& app, std::string_view report);

/// The word with which `number` names a pid; its error says how to find one.
inline constexpr std::string_view kPid = "PID";

/// A whole number between the bounds, or an error that names `what` and the text.
base::Result<long> number(std::string_view text, std::string_view what, long least, long most);

}  // namespace ddpdoctor::cli
