// SPDX-License-Identifier: Apache-2.0
// Compiled code to source lines, by the debug information that stands in the file itself. Meant for
// the few frames of a user's own program, not for libraries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ddpdoctor::stacks {

/// A place in the source; line 0 = unknown.
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

  /// The line of the instruction at `address` (of the file's own address space); nothing without
  /// debug information.
  std::optional<SourcePlace> at(const std::string& path, std::uint64_t address);

 private:
  struct File;
  std::map<std::string, std::unique_ptr<File>> files_;
};

/// Whether a file of code may be the user's own: neither the system's nor a part of MPI.
bool may_be_user_code(const std::string& path);

/// Function and line of an address in a file of code, read from the file; the name is empty and the
/// line 0 where the file does not tell.
struct CodePlace {
  std::string function;
  SourcePlace source;
};
CodePlace place_in_code(SourceLines& lines, const std::string& path, std::uint64_t address);

}  // namespace ddpdoctor::stacks
