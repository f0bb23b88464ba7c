// SPDX-License-Identifier: Apache-2.0
// A node that is asked through a program: its launcher, with the streams of that.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/nodes/ask.h"
#include "collector/nodes/child.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"

namespace ddpdoctor::nodes {

/// Neither copied nor moved: what it sends goes through itself.
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
    return talk_.ready();
  }
  [[nodiscard]] bool over() const {
    return talk_.over();
  }
  /// Seconds a word takes to it.
  [[nodiscard]] double way() const {
    return talk_.way();
  }
  /// "Look in so many seconds"; once.
  void go(double delay) {
    talk_.go(delay);
  }
  /// Takes back the question: it has had `seconds`.
  void give_up(double seconds);
  void kill() const;
  /// Its launcher has not ended yet.
  [[nodiscard]] bool lives();

  [[nodiscard]] Answer take();

 private:
  void explain_end(int status);

  std::string program_;
  std::optional<Child> child_;
  Lines lines_;
  std::string errors_;  // the end of what it wrote to stderr
  Conversation talk_;
};

}  // namespace ddpdoctor::nodes
