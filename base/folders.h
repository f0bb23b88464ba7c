// SPDX-License-Identifier: Apache-2.0
// Which folders a path goes through.
#pragma once

#include <string_view>

namespace ddpdoctor::base {

/// True when the path contains this folder ("torch", "torch/utils") or begins with it; tools omit
/// the folders that all packages share.
bool lies_in(std::string_view path, std::string_view folder);

}  // namespace ddpdoctor::base
