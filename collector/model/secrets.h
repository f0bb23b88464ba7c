// SPDX-License-Identifier: Apache-2.0
// Recognizes secrets by the name before them or by their own form. Reports and recordings are
// shared, so they must not contain passwords.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::model {

/// The name suggests a secret value: TOKEN, SECRET, PASSWORD, KEY, CREDENTIAL, JWT, …
bool is_secret(std::string_view name);

/// Replaces with "…" what looks like a secret in a text (a shell or log line, the value of a
/// variable, a message): values of HF_TOKEN=, "api_key" and --api-key, passwords in URLs, what
/// follows Bearer, and known token forms (ghp_…, hf_…, AKIA…, JWT, …). Applying it twice has no
/// further effect.
std::string without_secrets(std::string_view text);

/// The words of a command with secrets replaced by "…", including the value after `--hf-token`.
std::vector<std::string> public_command(const std::vector<std::string>& command);

}  // namespace ddpdoctor::model
