// SPDX-License-Identifier: Apache-2.0
// Function names of program counters, for all processes of a capture at once: one linear pass over
// each file's symbol table; only names that are used are read and demangled. There is no index and
// no cache: libtorch has 531,000 symbols, and a job needs about 80.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collector/stacks/native/elf_file.h"

namespace ddpdoctor::stacks {

/// Mangled names of the functions around `addresses` (file addresses, sorted and unique), in the
/// same order; empty = unknown.
std::vector<std::string> function_names(ElfFile& file, std::span<const std::uint64_t> addresses);

/// Collects addresses, then finds their names.
class FunctionNames {
 public:
  void want(ElfFile& file, std::uint64_t address);
  /// Finds all names; call once, after the last want().
  void resolve();
  /// Readable name of the function around a wanted address; empty = unknown.
  [[nodiscard]] const std::string& of(const ElfFile& file, std::uint64_t address) const;

 private:
  struct PerFile {
    ElfFile* file = nullptr;
    std::vector<std::uint64_t> addresses;
    std::vector<std::string> names;  // parallel to the addresses after resolve()
  };
  std::map<const ElfFile*, PerFile> files_;
  std::string unknown_;
};

}  // namespace ddpdoctor::stacks
