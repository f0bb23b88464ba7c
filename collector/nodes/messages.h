// SPDX-License-Identifier: Apache-2.0
// The messages of a node on its standard output during a snapshot: lines of "ddpdoctor-node/1
// SESSION WORD …". Everything else on that stream (a greeting of the login shell, warnings, labels
// before the line) is ignored. A node may send anything: sizes are limited, and its capture is
// treated like any untrusted recording.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::nodes {

/// Largest encoded capture of a node.
inline constexpr std::size_t kLargestAnswer = std::size_t{64} << 20U;

struct Message {
  std::string word;  // hello, pong, began, data, end, problem
  std::vector<std::string> arguments;
};

/// One line with its line break; arguments may contain any bytes.
std::string message_line(std::string_view session, std::string_view word,
                         const std::vector<std::string>& arguments);

/// A message of this session; nothing for other lines.
std::optional<Message> read_message(std::string_view line, std::string_view session);

/// `bytes` as data lines, followed by the line that ends them.
std::string data_lines(std::string_view session, std::string_view bytes);

/// The joined content of the data lines; nothing if it is damaged.
std::optional<std::string> decoded(std::string_view base64);

/// Splits bytes that arrive in pieces into lines. A line without an end is cut at a few thousand
/// bytes.
class Lines {
 public:
  void feed(std::string_view bytes, const std::function<void(std::string_view)>& line);

 private:
  std::string open_;
  bool too_long_ = false;
};

}  // namespace ddpdoctor::nodes
