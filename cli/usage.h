// SPDX-License-Identifier: Apache-2.0
// What is said when the words of a command line make no sense: one sentence that names the word.
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

/// Those of `words` that somebody who typed `typed` may have meant, the nearest first, at most
/// five.
std::vector<std::string_view> near(std::string_view typed,
                                   const std::vector<std::string_view>& words);

/// Words that neither the program nor the chosen command understands; no error when there are none.
base::Result<void> check_leftovers(const CLI::App& app);

/// What CLI11 reports of an option without a value, or with one that is no number, in our words:
/// "--output needs FILE".
base::Error in_our_words(const CLI::App& app, std::string_view report);

/// What `number` calls the number of a process; its error says how to find one.
inline constexpr std::string_view kPid = "PID";

/// A whole number between the bounds, or an error that names `what` and the text.
base::Result<long> number(std::string_view text, std::string_view what, long least, long most);

}  // namespace ddpdoctor::cli
