// SPDX-License-Identifier: Apache-2.0
// The names of services in a column before every line: "trainer  | text", "cache    | text" of
// docker compose, which pads the names to one width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::imports {

/// The text without that column, one service after the other; empty if there is no such column. The
/// names do not say which service is which rank.
std::string without_column(const std::vector<std::string_view>& lines);

}  // namespace ddpdoctor::imports
