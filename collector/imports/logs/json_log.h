// SPDX-License-Identifier: Apache-2.0
// Converts the logs of containers, collectors and structured loggers (one JSON object per line, or
// a document with a list of them) to plain lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// "{"log": "…", "stream": "stderr", "time": "…"}" of Docker and fluentd, "{"line": …, "labels":
/// …}" of logcli, "{"message": …, "rank": 3}" of structured loggers, a list of these, an answer of
/// Loki or CloudWatch.
bool is_json_log(std::string_view head, std::string_view path);

/// The lines, each after its container (if there are several), rank and time. Nothing if the text
/// is not such a log.
std::optional<std::string> json_log_text(std::string_view text);

}  // namespace ddpdoctor::imports
