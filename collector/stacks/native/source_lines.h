// SPDX-License-Identifier: Apache-2.0
// Maps compiled code to source lines with the debug information inside the file. For the few frames
// of a user's own program, not for libraries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ddpdoctor::stacks {

/// A source line; line 0 = unknown.
struct SourcePlace {
  std::string file;
  int line = 0;
};

/// Opens each file once.
class SourceLines {
 public:
  SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;
  SourceLines(SourceLines&&) = delete;
  SourceLines& operator=(SourceLines&&) = delete;
  ~SourceLines();

  /// The line of the instruction at `address` (a file address); nothing without debug information.
  std::optional<SourcePlace> at(const std::string& path, std::uint64_t address);

 private:
  struct File;
  std::map<std::string, std::unique_ptr<File>> files_;
};

/// False if a code file certainly belongs to the system or to MPI; otherwise it may be the user's.
bool may_be_user_code(std::string_view path);

/// Function and line of an address in a code file; the name is empty and the line 0 if the file
/// does not contain them.
struct CodePlace {
  std::string function;
  SourcePlace source;
};
CodePlace place_in_code(SourceLines& lines, const std::string& path, std::uint64_t address);

}  // namespace ddpdoctor::stacks
