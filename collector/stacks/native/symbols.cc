// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/symbols.h"

#include <algorithm>
#include <libelf.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <sys/mman.h>

#include "base/unique_fd.h"
#include "collector/stacks/native/demangle.h"
#include "collector/stacks/native/elf_parts.h"

namespace ddpdoctor::stacks {

namespace {

/// The best symbol found so far for one address.
struct Best {
  Elf64_Sym symbol{};
  bool found = false;
  bool settled = false;  // found in an earlier table
  std::string name;      // copied at the end of each table, while its names are accessible
};

std::size_t underscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

/// True if `one` is the better name for the code: the inner function, then a public name, then the
/// simpler of two aliases (poll, not __poll).
bool is_better(const SymbolTable& table, const Elf64_Sym& one, const Elf64_Sym& other) {
  if (one.st_value != other.st_value) {
    return one.st_value > other.st_value;
  }
  const auto is_local = [](const Elf64_Sym& symbol) {
    return ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
  };
  if (is_local(one) != is_local(other)) {
    return is_local(other);
  }
  return underscores(table.name(one)) < underscores(table.name(other));
}

/// Finds the wanted addresses inside a symbol's range: a table gives the first candidate for each
/// slice of the address range. Nearly all symbols of a table have none: may_contain rejects those
/// by two words of the symbol.
class Wanted {
 public:
  explicit Wanted(std::span<const std::uint64_t> addresses) : addresses_(addresses) {
    const std::uint64_t range = addresses.back() - addresses.front();
    while ((range >> shift_) >= kSlices) {
      ++shift_;
    }
    std::size_t next = 0;
    for (std::size_t slice = 0; slice < kSlices; ++slice) {
      const std::uint64_t start = addresses.front() + (std::uint64_t{slice} << shift_);
      while (next < addresses.size() && addresses[next] < start) {
        ++next;
      }
      first_[slice] = static_cast<std::uint32_t>(next);
      candidate_[slice] = next < addresses.size() ? addresses[next] : 0;
    }
  }

  /// False if no wanted address is in [value, value + size); may be true although there is none.
  [[nodiscard]] bool may_contain(std::uint64_t value, std::uint64_t size) const {
    if (value > addresses_.back()) {
      return false;
    }
    const std::uint64_t from = std::max(value, addresses_.front());
    const std::uint64_t candidate = candidate_[(from - addresses_.front()) >> shift_];
    return candidate < value || candidate - value < size;
  }

  /// Index of the first wanted address that is at least `value`.
  [[nodiscard]] std::size_t first_from(std::uint64_t value) const {
    if (value <= addresses_.front()) {
      return 0;
    }
    const std::uint64_t slice = (value - addresses_.front()) >> shift_;
    std::size_t index = slice < kSlices ? first_[slice] : addresses_.size();
    while (index < addresses_.size() && addresses_[index] < value) {
      ++index;
    }
    return index;
  }

 private:
  static constexpr std::size_t kSlices = 4096;
  std::span<const std::uint64_t> addresses_;
  unsigned shift_ = 0;
  std::array<std::uint32_t, kSlices> first_{};
  std::array<std::uint64_t, kSlices> candidate_{};  // the address at first_; 0 = none
};

bool is_code_symbol(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0 &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

void search(const SymbolTable& table, std::span<const std::uint64_t> addresses,
            std::vector<Best>& best) {
  const Wanted wanted(addresses);
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (const auto range = table.range_at(i); !wanted.may_contain(range.value, range.size)) {
      continue;
    }
    const Elf64_Sym symbol = table.at(i);
    if (!is_code_symbol(symbol)) {
      continue;
    }
    for (std::size_t j = wanted.first_from(symbol.st_value);
         j < addresses.size() && addresses[j] - symbol.st_value < symbol.st_size; ++j) {
      if (best[j].settled) {
        continue;
      }
      if (!best[j].found || is_better(table, symbol, best[j].symbol)) {
        best[j].symbol = symbol;
        best[j].found = true;
        changed.push_back(j);
      }
    }
  }
  for (const std::size_t j : changed) {
    best[j].name = table.name(best[j].symbol);
    best[j].settled = true;
  }
}

/// The bytes of .gnu_debugdata as a file, because libdwelf decompresses only from a descriptor.
base::UniqueFd as_file(std::span<const std::byte> bytes) {
  constexpr std::size_t kMaxCompressed = std::size_t{16} << 20U;
  base::UniqueFd fd(::memfd_create("debugdata", MFD_CLOEXEC));
  if (!fd || bytes.size() > kMaxCompressed ||
      ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    return {};
  }
  return fd;
}

/// Searches the small symbol table that distributions leave in stripped files.
void search_debugdata(const ElfFile::Parts& parts, std::span<const std::uint64_t> addresses,
                      std::vector<Best>& best) {
  const base::UniqueFd fd = as_file(parts.debugdata);
  if (!fd) {
    return;
  }
  ::elf_version(EV_CURRENT);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(::dwelf_elf_begin(fd.get()), &::elf_end);
  std::size_t size = 0;
  const char* const image = elf ? ::elf_rawfile(elf.get(), &size) : nullptr;
  if (image == nullptr) {
    return;
  }
  // Uses our own reader, because it is bounds-checked.
  const auto bytes = std::as_bytes(std::span(image, size));
  const auto inner = ElfFile::from_memory({bytes.begin(), bytes.end()}, parts.path);
  if (inner && (*inner)->parts().symtab.size() > 0) {
    search((*inner)->parts().symtab, addresses, best);
  }
}

bool all_found(const std::vector<Best>& best) {
  return std::all_of(best.begin(), best.end(), [](const Best& one) { return one.found; });
}

/// Searches the separate symbol file of a stripped file, if it is installed (libc6-dbg and similar
/// packages).
void search_installed(const ElfFile& file, std::span<const std::uint64_t> addresses,
                      std::vector<Best>& best) {
  const std::string id = file.build_id();
  if (id.size() < 4) {
    return;
  }
  const auto symbols =
      ElfFile::open("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  if (symbols && (*symbols)->build_id() == id && (*symbols)->parts().symtab.size() > 0) {
    search((*symbols)->parts().symtab, addresses, best);
  }
}

}  // namespace

std::vector<std::string> function_names(ElfFile& file, std::span<const std::uint64_t> addresses) {
  std::vector<Best> best(addresses.size());
  const ElfFile::Parts& parts = file.parts();
  if (!addresses.empty()) {
    if (parts.symtab.size() > 0) {
      search(parts.symtab, addresses, best);
      parts.release(parts.symtab.symbols);
    } else {
      search(parts.dynsym, addresses, best);
      if (!all_found(best) && !parts.debugdata.empty()) {
        search_debugdata(parts, addresses, best);
      }
      if (!all_found(best)) {
        search_installed(file, addresses, best);
      }
    }
  }
  std::vector<std::string> names;
  names.reserve(best.size());
  for (Best& one : best) {
    names.push_back(std::move(one.name));
  }
  return names;
}

void FunctionNames::want(ElfFile& file, std::uint64_t address) {
  PerFile& entry = files_[&file];
  entry.file = &file;
  entry.addresses.push_back(address);
}

void FunctionNames::resolve() {
  for (auto& [key, entry] : files_) {
    auto& addresses = entry.addresses;
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    entry.names = function_names(*entry.file, addresses);
    for (std::string& name : entry.names) {
      name = readable_function(name);
    }
  }
}

const std::string& FunctionNames::of(const ElfFile& file, std::uint64_t address) const {
  const auto entry = files_.find(&file);
  if (entry == files_.end()) {
    return unknown_;
  }
  const auto& addresses = entry->second.addresses;
  const auto found = std::lower_bound(addresses.begin(), addresses.end(), address);
  const auto index = static_cast<std::size_t>(found - addresses.begin());
  return found != addresses.end() && *found == address && index < entry->second.names.size()
             ? entry->second.names[index]
             : unknown_;
}

}  // namespace ddpdoctor::stacks
