// SPDX-License-Identifier: Apache-2.0
// Small text functions that every layer needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::base {

/// "0-2,5" for {0,1,2,5}; the numbers must be sorted and unique.
std::string ranges(const std::vector<int>& numbers);

/// The parts between separators; empty parts are kept.
std::vector<std::string_view> split(std::string_view text, char separator);

std::string_view trim(std::string_view text);

bool contains(std::string_view text, std::string_view part);
bool contains_any(std::string_view text, std::span<const std::string_view> parts);
bool begins_with_any(std::string_view text, std::span<const std::string_view> parts);

/// Cuts to `width` bytes (never inside a UTF-8 character) and marks the cut with "…".
std::string elide(std::string_view text, std::size_t width);

/// "4 min 12 s", "0.8 s": a duration in seconds as people write it.
std::string duration(double seconds);

/// "25 MiB", "512 B".
std::string bytes(double count);

/// The last component of a path.
std::string_view file_name(std::string_view path);

/// Makes untrusted bytes printable: control characters, invalid UTF-8 and characters that change
/// the writing direction become escapes.
std::string printable(std::string_view text);

/// Removes repeated and empty sentences; keeps the first of each.
void drop_repeats(std::vector<std::string>& sentences);

}  // namespace ddpdoctor::base
