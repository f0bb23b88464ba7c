// SPDX-License-Identifier: Apache-2.0
// What a line of Python leaves open: brackets, a triple-quoted string, a backslash.
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::program {

class OpenText {
 public:
  /// Adds the next line.
  void feed(std::string_view line);
  /// The next line continues the same statement.
  [[nodiscard]] bool any() const {
    return !brackets_.empty() || quote_ != 0 || continued_;
  }
  /// A backslash at the end of the line continues it.
  [[nodiscard]] bool continued() const {
    return continued_;
  }
  /// The quote of a one-line string that the last line did not close; 0 if there is none. Occurs
  /// only in text that is not Python, such as the inside of a string whose start is unknown.
  [[nodiscard]] char cut_off() const {
    return cut_off_;
  }
  /// The characters that would close the open strings and brackets: `""")`.
  [[nodiscard]] std::string closers() const;

 private:
  std::size_t skip_string(std::string_view line, std::size_t at);

  std::string brackets_;  // closing characters of the open brackets, outermost first
  char quote_ = 0;        // of an open triple-quoted string
  char cut_off_ = 0;
  bool continued_ = false;
};

/// The last character of a line, comments removed, is a colon.
bool ends_with_colon(std::string_view line);

}  // namespace ddpdoctor::program
