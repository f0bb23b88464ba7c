// SPDX-License-Identifier: Apache-2.0
// The internals of an ElfFile for other files of this folder: symbols and call-frame information.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collector/stacks/native/cfi_table.h"
#include "collector/stacks/native/elf_file.h"

namespace ddpdoctor::stacks {

/// A symbol table and its names.
struct SymbolTable {
  std::span<const std::byte> symbols;  // Elf64_Sym, unaligned
  std::span<const std::byte> names;

  [[nodiscard]] std::size_t size() const {
    return symbols.size() / sizeof(Elf64_Sym);
  }
  /// The entry at `index` (< size()).
  [[nodiscard]] Elf64_Sym at(std::size_t index) const;
  struct Range {
    std::uint64_t value = 0;
    std::uint64_t size = 0;
  };
  /// Only st_value and st_size of the entry at `index` (< size()).
  [[nodiscard]] Range range_at(std::size_t index) const {
    static_assert(offsetof(Elf64_Sym, st_size) ==
                  offsetof(Elf64_Sym, st_value) + sizeof(Elf64_Sym::st_value));
    Range range;
    std::memcpy(&range, symbols.data() + index * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value),
                sizeof(range));
    return range;
  }
  /// The symbol's name; empty if it is outside the name table or not terminated.
  [[nodiscard]] std::string_view name(const Elf64_Sym& symbol) const;
};

struct ElfFile::Parts {
  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  Parts(Parts&&) = delete;
  Parts& operator=(Parts&&) = delete;
  ~Parts();

  /// Bytes of the file; empty if the range is outside it.
  [[nodiscard]] std::span<const std::byte> range(std::uint64_t offset, std::uint64_t length) const;

  /// Releases pages after use, so that scanning a table of 76 MB does not increase our memory.
  void release(std::span<const std::byte> read) const;

  std::string path;
  std::vector<std::byte> owned;  // if the file comes from memory
  std::span<std::byte> image;    // MAP_PRIVATE; only the first page is writable
  bool mapped = false;
  std::vector<Elf64_Phdr> segments;
  SymbolTable symtab;
  SymbolTable dynsym;
  std::span<const std::byte> gnu_hash;
  std::span<const std::byte>
      debugdata;  // .gnu_debugdata: an xz-compressed ELF with a small .symtab
  std::optional<Elf64_Phdr> frame_header;  // PT_GNU_EH_FRAME
  std::unique_ptr<CfiTable> cfi;           // made on first use by cfi_of
  // Cached results of symbol().
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> answers;
};

/// The call-frame information of a file.
CfiTable& cfi_of(ElfFile& file);

}  // namespace ddpdoctor::stacks
