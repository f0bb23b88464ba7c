// SPDX-License-Identifier: Apache-2.0
// Program counters to function names, for all processes of a capture at once: per file one linear
// pass over its symbol table, names read and demangled for winners only. Nothing is indexed and
// nothing is kept: libtorch has 531,000 symbols, a job asks for 80.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collector/stacks/native/elf_file.h"

namespace ddpdoctor::stacks {

/// Mangled names of the functions around `addresses` (file addresses, sorted and unique), in their
/// order; empty = unknown.
std::vector<std::string> function_names(ElfFile& file, std::span<const std::uint64_t> addresses);

/// Collects wanted addresses, then names them.
class FunctionNames {
 public:
  void want(ElfFile& file, std::uint64_t address);
  /// Names everything wanted so far; called once, after the last want().
  void resolve();
  /// Readable name of the function around a wanted address; empty = unknown.
  [[nodiscard]] const std::string& of(const ElfFile& file, std::uint64_t address) const;

 private:
  struct PerFile {
    ElfFile* file = nullptr;
    std::vector<std::uint64_t> addresses;
    std::vector<std::string> names;  // parallel after resolve()
  };
  std::map<const ElfFile*, PerFile> files_;
  std::string unknown_;
};

}  // namespace ddpdoctor::stacks
