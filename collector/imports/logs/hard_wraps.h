// SPDX-License-Identifier: Apache-2.0
// Undoes the line breaks that a terminal or a log viewer of fixed width put into a copied log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// Joins lines that a terminal or a log viewer of fixed width broke: in the whole text if lines of
/// the most frequent width go on in the next, or in a part of it whose widest lines do. Nothing if
/// no line does.
std::optional<std::string> without_hard_wraps(std::string_view text);

}  // namespace ddpdoctor::imports
