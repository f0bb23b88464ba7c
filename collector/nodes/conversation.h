// SPDX-License-Identifier: Apache-2.0
// The conversation with one node, independent of the transport: what it has sent so far, and what
// is sent to it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "collector/nodes/ask.h"
#include "collector/nodes/messages.h"

namespace ddpdoctor::nodes {

/// Seconds since the epoch.
double now_seconds();

class Conversation {
 public:
  /// Sends a line to the node.
  using Send = std::function<void(const std::string&)>;

  Conversation(std::string node, std::string session, Send send)
      : session_(std::move(session)), send_(std::move(send)) {
    answer_.node = std::move(node);
  }

  void hear(std::string_view line);
  /// It found its job, and its clock is known as precisely as possible.
  [[nodiscard]] bool ready() const {
    return ready_;
  }
  [[nodiscard]] bool over() const {
    return over_;
  }
  /// Seconds that a message takes to reach it.
  [[nodiscard]] double way() const {
    return answer_.clock ? answer_.clock->error : 0;
  }
  /// The node's own name; empty before its first answer.
  [[nodiscard]] const std::string& host() const {
    return answer_.host;
  }
  /// Tells it to take a snapshot in `delay` seconds; acts once.
  void go(double delay);
  /// Marks it as failed, with the reason.
  void fail(base::Error problem);
  /// Ends the conversation after `seconds` without a result.
  void give_up(double seconds, std::string_view last_said);
  [[nodiscard]] Answer take() {
    return std::move(answer_);
  }

 private:
  void hear_hello(const Message& message);
  void hear_pong(const Message& message, double now);
  void hear_data(const Message& message);
  void finish(const Message& message);
  void ping();

  std::string session_;
  Send send_;
  std::map<std::size_t, std::string> data_;
  std::size_t held_ = 0;  // bytes received
  std::optional<Message> end_;
  Answer answer_;
  bool ready_ = false;
  bool gone_ = false;  // was told to take a snapshot
  bool over_ = false;
  int pings_ = 0;
  double asked_at_ = 0;
};

}  // namespace ddpdoctor::nodes
