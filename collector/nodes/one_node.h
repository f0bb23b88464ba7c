// SPDX-License-Identifier: Apache-2.0
// A node that is asked through a launcher program and its streams.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/nodes/ask.h"
#include "collector/nodes/child.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"

namespace ddpdoctor::nodes {

/// Neither copied nor moved, because its send callback refers to the object.
class OneNode {
 public:
  OneNode(const NodeCommand& command, std::string session);

  /// Descriptors to poll; -1 = closed.
  [[nodiscard]] int output() const;
  [[nodiscard]] int errors() const;
  void read_output();
  void read_errors();
  /// Records the launcher's exit once its streams are read.
  void notice_end();

  /// It found its job, and its clock is known as precisely as possible.
  [[nodiscard]] bool ready() const {
    return talk_.ready();
  }
  [[nodiscard]] bool over() const {
    return talk_.over();
  }
  /// Seconds that a message takes to reach it.
  [[nodiscard]] double way() const {
    return talk_.way();
  }
  /// Tells it to take a snapshot in `delay` seconds; acts once.
  void go(double delay) {
    talk_.go(delay);
  }
  /// Ends the conversation after `seconds` without a result.
  void give_up(double seconds);
  void kill() const;
  /// True while its launcher runs.
  [[nodiscard]] bool lives();

  [[nodiscard]] Answer take();

 private:
  void explain_end(int status);

  std::string program_;
  std::optional<Child> child_;
  Lines lines_;
  std::string errors_;  // the last part of its stderr
  Conversation talk_;
};

}  // namespace ddpdoctor::nodes
