// SPDX-License-Identifier: Apache-2.0
// Plain data → a pickle of protocol 2, which every Python 3 reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// Writes one value, from its outside to its inside: what is opened must be closed. Texts that
/// recur are written once.
class PickleWriter {
 public:
  PickleWriter();

  void none();
  void flag(bool value);
  void whole(std::int64_t value);
  /// Bytes that are no UTF-8 are escaped: Python would refuse them.
  void text(std::string_view value);
  /// Keys and values in turn until it is closed.
  void open_dict();
  void close_dict();
  void open_list();
  void close_list();
  /// The two values before it become one tuple.
  void pair();

  /// Nothing may be written after this.
  std::string finish();

 private:
  void word(std::uint32_t value);

  std::string out_;
  std::map<std::string, std::uint32_t, std::less<>> known_;
};

}  // namespace ddpdoctor::imports
