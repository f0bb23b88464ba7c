// SPDX-License-Identifier: Apache-2.0
// What a node says on its standard output while the job is looked at there: lines of
// "ddpdoctor-node/1 SESSION WORD …". Everything else on that stream (a greeting of the login shell,
// warnings, labels before the line) is passed over. A node may send anything: sizes are capped, and
// what it sends as a capture is read as any recording of a stranger.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::nodes {

/// A capture of a node as it may come over the line, encoded.
inline constexpr std::size_t kLargestAnswer = std::size_t{64} << 20U;

struct Message {
  std::string word;  // hello, pong, began, data, end, problem
  std::vector<std::string> arguments;
};

/// One line with its end; arguments may be any bytes.
std::string message_line(std::string_view session, std::string_view word,
                         const std::vector<std::string>& arguments);

/// A message of this session; nothing for any other line.
std::optional<Message> read_message(std::string_view line, std::string_view session);

/// `bytes` as lines of data with the line that ends them.
std::string data_lines(std::string_view session, std::string_view bytes);

/// Of what the data lines held, joined; nothing when it is not what was sent.
std::optional<std::string> decoded(std::string_view base64);

/// Bytes that arrive in pieces → lines. A line without end is cut at a few thousand bytes.
class Lines {
 public:
  void feed(std::string_view bytes, const std::function<void(std::string_view)>& line);

 private:
  std::string open_;
  bool too_long_ = false;
};

}  // namespace ddpdoctor::nodes
