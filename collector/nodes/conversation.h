// SPDX-License-Identifier: Apache-2.0
// The conversation with one node, by whatever way its lines come and go: what it has said so far,
// and what is said to it.
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
  /// Takes a line to the node.
  using Send = std::function<void(const std::string&)>;

  Conversation(std::string node, std::string session, Send send)
      : session_(std::move(session)), send_(std::move(send)) {
    answer_.node = std::move(node);
  }

  void hear(std::string_view line);
  /// It found its job, and its clock is known as well as it will be.
  [[nodiscard]] bool ready() const {
    return ready_;
  }
  [[nodiscard]] bool over() const {
    return over_;
  }
  /// Seconds a word takes to it.
  [[nodiscard]] double way() const {
    return answer_.clock ? answer_.clock->error : 0;
  }
  /// How it calls itself; empty before it answered.
  [[nodiscard]] const std::string& host() const {
    return answer_.host;
  }
  /// "Look in so many seconds"; once.
  void go(double delay);
  /// It will not answer, and why.
  void fail(base::Error problem);
  /// Takes back the question: it has had `seconds`.
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
  std::size_t held_ = 0;  // bytes of it
  std::optional<Message> end_;
  Answer answer_;
  bool ready_ = false;
  bool gone_ = false;  // told to look
  bool over_ = false;
  int pings_ = 0;
  double asked_at_ = 0;
};

}  // namespace ddpdoctor::nodes
