// SPDX-License-Identifier: Apache-2.0
// Writes plain data as a pickle of protocol 2, which every Python 3 reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// Writes one value from the outside inwards: everything opened must be closed. Repeated texts are
/// written once.
class PickleWriter {
 public:
  PickleWriter();

  void none();
  void flag(bool value);
  void whole(std::int64_t value);
  /// Invalid UTF-8 is escaped, because Python would refuse it.
  void text(std::string_view value);
  /// Opens a dict; keys and values alternate until it is closed.
  void open_dict();
  void close_dict();
  void open_list();
  void close_list();
  /// Combines the two previous values into one tuple.
  void pair();

  /// Returns the pickle; nothing may be written afterwards.
  std::string finish();

 private:
  void word(std::uint32_t value);

  std::string out_;
  std::map<std::string, std::uint32_t, std::less<>> known_;
};

}  // namespace ddpdoctor::imports
