// SPDX-License-Identifier: Apache-2.0
// The conversation with one node: what it has said so far, and what is said to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/nodes/ask.h"
#include "collector/nodes/child.h"
#include "collector/nodes/messages.h"

namespace ddpdoctor::nodes {

/// Seconds since the epoch.
double now_seconds();

class OneNode {
 public:
  OneNode(const NodeCommand& command, std::string session);

  /// Descriptors to poll; -1 = closed.
  [[nodiscard]] int output() const;
  [[nodiscard]] int errors() const;
  void read_output();
  void read_errors();
  /// Notes the end of the launcher once its streams are read.
  void notice_end();

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
  /// "Look in so many seconds"; once.
  void go(double delay);
  /// Takes back the question: it has had `seconds`.
  void give_up(double seconds);
  void kill() const;
  /// Its launcher has not ended yet.
  [[nodiscard]] bool lives();

  [[nodiscard]] Answer take();

 private:
  void hear(std::string_view line);
  void hear_hello(const Message& message);
  void hear_pong(const Message& message, double now);
  void finish(const Message& message);
  void ping();
  void explain_end(int status);

  std::string session_;
  std::string program_;
  std::optional<Child> child_;
  Lines lines_;
  std::string data_;
  std::string errors_;  // the end of what it wrote to stderr
  Answer answer_;
  bool ready_ = false;
  bool gone_ = false;  // told to look
  bool over_ = false;
  int pings_ = 0;
  double asked_at_ = 0;
};

}  // namespace ddpdoctor::nodes
