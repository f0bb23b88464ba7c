// SPDX-License-Identifier: Apache-2.0
// Numbers and short texts as bytes: numbers are base 128, lowest seven bits first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ddpdoctor::fleet {

class Packer {
 public:
  void number(std::uint64_t value);
  /// -1, the usual "unknown", takes one byte like 0.
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) + 1);
  }
  /// Four raw bytes.
  void word(std::uint32_t value);
  void text(std::string_view text);
  [[nodiscard]] std::string take() {
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

/// Reads them back. After the first missing or invalid item, everything is 0 and failed() is true.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number();
  /// A number of at most `most`; a larger one is a failure.
  std::uint64_t number_up_to(std::uint64_t most);
  std::int64_t signed_number() {
    return static_cast<std::int64_t>(number() - 1);
  }
  std::uint32_t word();
  std::string text();
  [[nodiscard]] bool failed() const {
    return failed_;
  }
  [[nodiscard]] bool at_end() const {
    return left_.empty();
  }

 private:
  std::string_view left_;
  bool failed_ = false;
};

}  // namespace ddpdoctor::fleet
