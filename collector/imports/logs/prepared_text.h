// SPDX-License-Identifier: Apache-2.0
// The bytes of a text file, step by step as the program wrote them: without encodings, colours,
// margins and line numbers, with a rank before each line whose author is known.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "collector/imports/logs/labels.h"
#include "collector/imports/logs/traceback_styles.h"

namespace ddpdoctor::imports {

/// Keeps the texts of all steps; views into it are valid as long as it and `bytes` live.
class PreparedText {
 public:
  explicit PreparedText(std::string_view bytes);
  PreparedText(const PreparedText&) = delete;
  PreparedText& operator=(const PreparedText&) = delete;

  /// The text that readers read.
  [[nodiscard]] std::string_view text() const {
    return text_;
  }
  /// The text before tracebacks were given to ranks and bars were removed.
  [[nodiscard]] std::string_view named() const {
    return named_;
  }
  [[nodiscard]] const std::optional<PlainTracebacks>& tracebacks() const {
    return tracebacks_;
  }
  [[nodiscard]] const Labels& labels() const {
    return labels_;
  }
  [[nodiscard]] const Labels& actors() const {
    return actors_;
  }

 private:
  void take(std::optional<std::string> changed);

  std::deque<std::string> steps_;
  std::optional<PlainTracebacks> tracebacks_;
  Labels labels_;
  Labels actors_;
  std::string_view named_;
  std::string_view text_;
};

}  // namespace ddpdoctor::imports
