// SPDX-License-Identifier: Apache-2.0
// As much of JSON Schema (draft 2020-12) as docs/*.schema.json use, so that the tests need no
// package for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::tests {

/// What is wrong with `document`, each with its path; empty when it fits. A schema with a word that
/// is not known here is wrong, too.
std::vector<std::string> schema_errors(std::string_view document, std::string_view schema);

}  // namespace ddpdoctor::tests
