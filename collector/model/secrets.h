// SPDX-License-Identifier: Apache-2.0
// What looks like a secret, by the name that stands before it or by its own shape. Reports and
// recordings are passed on; passwords must not go with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::model {

/// The name looks as if the value were a secret: TOKEN, SECRET, PASSWORD, KEY, CREDENTIAL, JWT, …
bool is_secret(std::string_view name);

/// The text (a line of a shell, of a log, the value of a variable, a message) with "…" for what
/// looks like a secret: values of HF_TOKEN=, "api_key": and --api-key, passwords in URLs, what
/// follows Bearer, and the shapes that services give their tokens (ghp_…, hf_…, AKIA…, JWT, …).
/// Applied again it changes nothing.
std::string without_secrets(std::string_view text);

/// Command words with what looks like a secret replaced by "…", that of `--hf-token`, too.
std::vector<std::string> public_command(const std::vector<std::string>& command);

}  // namespace ddpdoctor::model
