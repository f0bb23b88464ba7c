// SPDX-License-Identifier: Apache-2.0
// Other encodings, zeros and erased characters in the bytes of a log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// UTF-16 (as PowerShell's `>` writes it) as UTF-8. Nothing if the bytes are not UTF-16.
std::optional<std::string> from_utf16(std::string_view bytes);

/// Without zeros and other control characters, and without what backspaces erase. Nothing if there
/// are none.
std::optional<std::string> without_odd_bytes(std::string_view text);

}  // namespace ddpdoctor::imports
