// SPDX-License-Identifier: Apache-2.0
// The paths of this checkout and its build. Functions, because macros on every command line would
// give each checkout objects of its own, which ccache cannot share.
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::tests {

/// A file of the source tree: source_file("docs/causes.md").
std::string source_file(std::string_view path);

/// A file of the build folder: built_file("ddpdoctor").
std::string built_file(std::string_view path);

}  // namespace ddpdoctor::tests
