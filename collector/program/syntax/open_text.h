// SPDX-License-Identifier: Apache-2.0
// What a line of Python leaves open: brackets, a triple-quoted string, a backslash.
#pragma once

#include <string>
#include <string_view>

namespace ddpdoctor::program {

class OpenText {
 public:
  /// The next line.
  void feed(std::string_view line);
  /// The next line belongs to the same statement.
  [[nodiscard]] bool any() const {
    return !brackets_.empty() || quote_ != 0 || continued_;
  }
  /// By a backslash at the end of the line.
  [[nodiscard]] bool continued() const {
    return continued_;
  }
  /// The quote of a string that the last line began and did not end; 0 where there is none. Only in
  /// text that is no Python: prose of a string whose beginning is not known.
  [[nodiscard]] char cut_off() const {
    return cut_off_;
  }
  /// What would end strings and brackets here: `""")`.
  [[nodiscard]] std::string closers() const;

 private:
  std::size_t skip_string(std::string_view line, std::size_t at);

  std::string brackets_;  // the closing ones of those that are open, outermost first
  char quote_ = 0;        // of an open triple-quoted string
  char cut_off_ = 0;
  bool continued_ = false;
};

/// The last thing on a line, comments aside, is a colon.
bool ends_with_colon(std::string_view line);

}  // namespace ddpdoctor::program
