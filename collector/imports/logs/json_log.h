// SPDX-License-Identifier: Apache-2.0
// Logs as containers, collectors and structured loggers write them: a JSON object for each line, or
// a document with a list of such → plain lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// "{"log": "…", "stream": "stderr", "time": "…"}" of Docker and fluentd, "{"line": …, "labels":
/// …}" of logcli, "{"message": …, "rank": 3}" of structured loggers, a list of these, an answer of
/// Loki or CloudWatch.
bool is_json_log(std::string_view head, std::string_view path);

/// The lines, each behind its container (where there are several), rank and time. Nothing when the
/// text is no such log.
std::optional<std::string> json_log_text(std::string_view text);

}  // namespace ddpdoctor::imports
