// SPDX-License-Identifier: Apache-2.0
// Bytes as text of 64 letters, with = at the end (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::base {

inline constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// For file names and addresses.
inline constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void append_base64(std::string_view bytes, std::string& out, std::string_view letters = kBase64);

}  // namespace ddpdoctor::base
