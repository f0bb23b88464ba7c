// SPDX-License-Identifier: Apache-2.0
// The part of JSON Schema (draft 2020-12) that docs/*.schema.json use, so that the tests need no
// package for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::tests {

/// The errors of `document`, each with its path; empty if it matches. An unknown keyword in a
/// schema is an error, too.
std::vector<std::string> schema_errors(std::string_view document, std::string_view schema);

}  // namespace ddpdoctor::tests
