// SPDX-License-Identifier: Apache-2.0
// Finds one name in a symbol table: in .dynsym by hash; in .symtab by searching the name table for
// the text and then the entries for its position. No index is built: torch's table has 531,000
// entries and 76 MB of names, and only one or two lookups are needed.
#include <algorithm>
#include <array>
#include <cstring>

#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/target/live_memory.h"

namespace ddpdoctor::stacks {

namespace {

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t index) {
  std::uint32_t word = 0;
  if (bytes.size() / sizeof(word) > index) {
    std::memcpy(&word, bytes.data() + index * sizeof(word), sizeof(word));
  }
  return word;
}

std::optional<std::uint64_t> defined(const Elf64_Sym& symbol) {
  if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) == STT_TLS) {
    return std::nullopt;
  }
  return symbol.st_value;
}

/// .gnu.hash: nbuckets, first hashed symbol, bloom words, bloom shift, bloom filter, buckets,
/// chains.
std::optional<std::uint64_t> by_hash(const ElfFile::Parts& parts, std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char letter : name) {
    hash = hash * 33 + static_cast<unsigned char>(letter);
  }
  const std::uint32_t buckets = word_at(parts.gnu_hash, 0);
  const std::uint32_t first = word_at(parts.gnu_hash, 1);
  const std::size_t bucket_words = 4 + std::size_t{word_at(parts.gnu_hash, 2)} * 2;
  if (buckets == 0) {
    return std::nullopt;
  }
  const std::size_t chains = bucket_words + buckets;
  for (std::size_t index = word_at(parts.gnu_hash, bucket_words + hash % buckets);
       index >= first && index != 0 && index < parts.dynsym.size(); ++index) {
    const std::uint32_t link = word_at(parts.gnu_hash, chains + index - first);
    if ((link | 1U) == (hash | 1U)) {
      const Elf64_Sym symbol = parts.dynsym.at(index);
      if (parts.dynsym.name(symbol) == name) {
        if (const auto value = defined(symbol)) {
          return value;
        }
      }
    }
    if ((link & 1U) != 0) {
      break;
    }
  }
  return std::nullopt;
}

/// Positions of "name\0" in the name table; linkers let a short name share the end of a longer one.
std::vector<std::uint32_t> positions(const ElfFile::Parts& parts, const SymbolTable& table,
                                     std::string_view name) {
  constexpr std::size_t kChunk = std::size_t{4} << 20U;
  constexpr std::size_t kMaxPositions = 64;
  std::string wanted(name);
  wanted += '\0';
  std::vector<std::uint32_t> found;
  for (std::size_t begin = 0; begin < table.names.size(); begin += kChunk) {
    const std::size_t length = std::min(table.names.size() - begin, kChunk + wanted.size() - 1);
    const auto chunk = table.names.subspan(begin, length);
    std::size_t from = 0;
    while (found.size() < kMaxPositions) {
      const void* hit =
          ::memmem(chunk.data() + from, chunk.size() - from, wanted.data(), wanted.size());
      if (hit == nullptr) {
        break;
      }
      const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(hit) - chunk.data());
      found.push_back(static_cast<std::uint32_t>(begin + at));
      from = at + 1;
    }
    parts.release(chunk);
  }
  return found;
}

std::optional<std::uint64_t> by_scan(const ElfFile::Parts& parts, const SymbolTable& table,
                                     std::string_view name) {
  const auto wanted = positions(parts, table, name);
  if (wanted.empty()) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> value;
  for (std::size_t i = 0; i < table.size() && !value; ++i) {
    const Elf64_Sym symbol = table.at(i);
    if (std::find(wanted.begin(), wanted.end(), symbol.st_name) != wanted.end()) {
      value = defined(symbol);
    }
  }
  parts.release(table.symbols);
  return value;
}

/// True if the entry's name is `name`; reads no more bytes than `name` has.
bool is_named(const SymbolTable& table, const Elf64_Sym& symbol, std::string_view name) {
  if (symbol.st_name >= table.names.size() || table.names.size() - symbol.st_name <= name.size()) {
    return false;
  }
  const auto text = table.names.subspan(symbol.st_name, name.size() + 1);
  return text.back() == std::byte{0} && std::memcmp(text.data(), name.data(), name.size()) == 0;
}

/// Which names are compared. Linkers write names in the order of their symbols, so the next one
/// tells a name's length: of torch's 14,000 variables of 8 bytes, 509 names must be touched.
enum class Names : std::uint8_t { kOfItsLength, kAll };

/// False if the entry's name ends where the next entry's name starts, and has another length.
bool may_have_length(const SymbolTable& table, std::size_t index, std::size_t length) {
  const std::uint64_t start = table.at(index).st_name;
  const std::uint64_t next = index + 1 < table.size() ? table.at(index + 1).st_name : 0;
  return next <= start || next - start == length + 1;
}

std::optional<std::uint64_t> variable_in(const SymbolTable& table, std::string_view name,
                                         std::uint64_t size, Names names) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.range_at(i).size != size) {
      continue;
    }
    const Elf64_Sym symbol = table.at(i);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT ||
        (names == Names::kOfItsLength && !may_have_length(table, i, name.size()))) {
      continue;
    }
    if (const auto value = is_named(table, symbol, name) ? defined(symbol) : std::nullopt) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

Elf64_Sym SymbolTable::at(std::size_t index) const {
  Elf64_Sym symbol{};
  std::memcpy(&symbol, symbols.data() + index * sizeof(symbol), sizeof(symbol));
  return symbol;
}

std::string_view SymbolTable::name(const Elf64_Sym& symbol) const {
  constexpr std::size_t kMaxName = 65536;
  if (symbol.st_name >= names.size()) {
    return {};
  }
  const auto rest =
      names.subspan(symbol.st_name, std::min(names.size() - symbol.st_name, kMaxName));
  const void* const end = std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) {
    return {};
  }
  // char may alias any bytes; the text is read, never written.
  const char* const text = reinterpret_cast<const char*>(rest.data());  // NOLINT
  return {text, static_cast<std::size_t>(static_cast<const std::byte*>(end) - rest.data())};
}

std::optional<std::uint64_t> ElfFile::symbol(std::string_view name) const {
  if (name.empty()) {
    return std::nullopt;
  }
  if (const auto known = parts_->answers.find(name); known != parts_->answers.end()) {
    return known->second;
  }
  auto value = by_hash(*parts_, name);
  if (!value && parts_->gnu_hash.empty()) {
    value = by_scan(*parts_, parts_->dynsym, name);
  }
  if (!value) {
    value = by_scan(*parts_, parts_->symtab, name);
  }
  parts_->answers.emplace(name, value);
  return value;
}

std::optional<std::uint64_t> ElfFile::variable(std::string_view name, std::uint64_t size) const {
  if (name.empty()) {
    return std::nullopt;
  }
  if (const auto known = parts_->answers.find(name); known != parts_->answers.end()) {
    return known->second;
  }
  const SymbolTable& table = parts_->symtab;
  auto value = variable_in(table, name, size, Names::kOfItsLength);
  if (!value) {
    value = variable_in(table, name, size, Names::kAll);
  }
  parts_->release(table.symbols);
  parts_->release(table.names);
  parts_->answers.emplace(name, value);
  return value;
}

}  // namespace ddpdoctor::stacks
