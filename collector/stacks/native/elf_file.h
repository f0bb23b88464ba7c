// SPDX-License-Identifier: Apache-2.0
// A mapped ELF file: segments, symbols by name, build ID. Everything in it is untrusted and
// bounds-checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::stacks {

/// A read-only view of one ELF object, from a file or from the target's memory (vdso).
class ElfFile {
 public:
  static base::Result<std::unique_ptr<ElfFile>> open(const std::string& path);
  static base::Result<std::unique_ptr<ElfFile>> from_memory(std::vector<std::byte> bytes,
                                                            std::string name);
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ElfFile(ElfFile&&) = delete;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::string build_id() const;

  /// Bytes at a virtual address of the file; empty if it is not in a loaded segment.
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t address, std::size_t length) const;

  /// Virtual address of a file offset; `executable` selects among segments that share a page of the
  /// file.
  [[nodiscard]] std::optional<std::uint64_t> address_of_offset(std::uint64_t offset,
                                                               bool executable) const;

  /// Value of the symbol with exactly this (mangled) name.
  [[nodiscard]] std::optional<std::uint64_t> symbol(std::string_view name) const;

  /// Value of the variable in .symtab with exactly this (mangled) name and size in bytes. Only
  /// names of variables with that size are compared, first those that can have that length.
  [[nodiscard]] std::optional<std::uint64_t> variable(std::string_view name,
                                                      std::uint64_t size) const;

  struct Parts;
  [[nodiscard]] Parts& parts();

 private:
  explicit ElfFile(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ddpdoctor::stacks
