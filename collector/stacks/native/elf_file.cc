// SPDX-License-Identifier: Apache-2.0
// Reads the section headers once and then hides them (sets them to 0 in our private copy of the
// first page) if the file has a PT_GNU_EH_FRAME: libdw would otherwise walk them first, miss the
// search table of files whose .eh_frame precedes .eh_frame_hdr (every library of torch), and build
// a tree of all 334,000 functions.
#include "collector/stacks/native/elf_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/target/live_memory.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxSegments = 1024;

template <typename T>
bool load(std::span<const std::byte> from, T& value) {
  if (from.size() < sizeof(T)) {
    return false;
  }
  std::memcpy(&value, from.data(), sizeof(T));
  return true;
}

void read_segments(ElfFile::Parts& parts, const Elf64_Ehdr& header) {
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, kMaxSegments); ++i) {
    Elf64_Phdr segment{};
    if (!load(parts.range(header.e_phoff + i * sizeof(segment), sizeof(segment)), segment)) {
      return;
    }
    parts.segments.push_back(segment);
    if (segment.p_type == PT_GNU_EH_FRAME && segment.p_memsz != 0) {
      parts.frame_header = segment;
    }
  }
}

void read_sections(ElfFile::Parts& parts, const Elf64_Ehdr& header) {
  const auto section = [&](std::size_t index, Elf64_Shdr& into) {
    return index < header.e_shnum &&
           load(parts.range(header.e_shoff + index * sizeof(into), sizeof(into)), into);
  };
  Elf64_Shdr strings{};
  const bool named = section(header.e_shstrndx, strings);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr one{};
    if (!section(i, one)) {
      return;
    }
    const auto bytes = one.sh_type == SHT_NOBITS ? std::span<const std::byte>{}
                                                 : parts.range(one.sh_offset, one.sh_size);
    Elf64_Shdr names{};
    if ((one.sh_type == SHT_SYMTAB || one.sh_type == SHT_DYNSYM) && section(one.sh_link, names)) {
      const SymbolTable table{.symbols = bytes,
                              .names = parts.range(names.sh_offset, names.sh_size)};
      (one.sh_type == SHT_SYMTAB ? parts.symtab : parts.dynsym) = table;
    } else if (one.sh_type == SHT_GNU_HASH) {
      parts.gnu_hash = bytes;
    } else if (one.sh_type == SHT_PROGBITS && named) {
      constexpr std::string_view kName = ".gnu_debugdata";
      const auto name = parts.range(strings.sh_offset + one.sh_name, kName.size() + 1);
      if (!name.empty() && std::memcmp(name.data(), kName.data(), kName.size()) == 0) {
        parts.debugdata = bytes;
      }
    }
  }
}

base::Result<void> read_headers(ElfFile::Parts& parts) {
  Elf64_Ehdr header{};
  if (!load(parts.image, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return base::failure(parts.path + " is not an ELF file");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    return base::failure(fmt::format("{} is no ELF file for {}", parts.path, kMachineName));
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) {
    return base::failure(parts.path + " has no readable program headers");
  }
  read_segments(parts, header);
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    read_sections(parts, header);
  }
  if (parts.frame_header) {
    if (parts.mapped && ::mprotect(parts.image.data(), std::min(kPageSize, parts.image.size()),
                                   PROT_READ | PROT_WRITE) != 0) {
      return base::failure(parts.path + ": " + std::generic_category().message(errno));
    }
    header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = 0;
    std::memcpy(parts.image.data(), &header, sizeof(header));
  }
  return {};
}

/// The descriptor of the note "GNU" of type NT_GNU_BUILD_ID.
std::string build_id_in(std::span<const std::byte> notes) {
  Elf64_Nhdr note{};
  while (load(notes, note)) {
    const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
    const std::size_t content = sizeof(note) + padded(note.n_namesz);
    const std::size_t total = content + padded(note.n_descsz);
    if (total > notes.size()) {
      return {};
    }
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + sizeof(note), "GNU", 4) == 0) {
      std::string text;
      for (const std::byte byte : notes.subspan(content, note.n_descsz)) {
        text += fmt::format("{:02x}", static_cast<unsigned>(byte));
      }
      return text;
    }
    notes = notes.subspan(total);
  }
  return {};
}

}  // namespace

ElfFile::Parts::~Parts() {
  cfi.reset();
  if (mapped) {
    ::munmap(image.data(), image.size());
  }
}

std::span<const std::byte> ElfFile::Parts::range(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0 || offset > image.size() || length > image.size() - offset) {
    return {};
  }
  return image.subspan(offset, length);
}

void ElfFile::Parts::release(std::span<const std::byte> read) const {
  if (!mapped || read.empty()) {
    return;
  }
  // Keeps the first page: it contains our modified header, which would be lost.
  const auto start = static_cast<std::size_t>(read.data() - image.data());
  const std::size_t from = std::max(kPageSize, start / kPageSize * kPageSize);
  const std::size_t to = (start + read.size()) / kPageSize * kPageSize;
  if (from < to) {
    ::madvise(image.data() + from, to - from, MADV_DONTNEED);
  }
}

base::Result<std::unique_ptr<ElfFile>> ElfFile::open(const std::string& path) {
  // Nonblocking, because the path comes from the target and could be a FIFO.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return base::failure(path + ": " + std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
    return base::failure(path + " is not a regular file with content");
  }
  auto parts = std::make_unique<Parts>();
  parts->path = path;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return base::failure(path + ": " + std::generic_category().message(errno));
  }
  parts->image = {static_cast<std::byte*>(memory), size};
  parts->mapped = true;
  if (const auto read = read_headers(*parts); !read) {
    return tl::make_unexpected(read.error());
  }
  return std::unique_ptr<ElfFile>(new ElfFile(std::move(parts)));
}

base::Result<std::unique_ptr<ElfFile>> ElfFile::from_memory(std::vector<std::byte> bytes,
                                                            std::string name) {
  auto parts = std::make_unique<Parts>();
  parts->path = std::move(name);
  parts->owned = std::move(bytes);
  parts->image = parts->owned;
  if (const auto read = read_headers(*parts); !read) {
    return tl::make_unexpected(read.error());
  }
  return std::unique_ptr<ElfFile>(new ElfFile(std::move(parts)));
}

ElfFile::ElfFile(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ElfFile::~ElfFile() = default;

const std::string& ElfFile::path() const {
  return parts_->path;
}

ElfFile::Parts& ElfFile::parts() {
  return *parts_;
}

std::string ElfFile::build_id() const {
  for (const Elf64_Phdr& segment : parts_->segments) {
    if (segment.p_type == PT_NOTE) {
      std::string text = build_id_in(parts_->range(segment.p_offset, segment.p_filesz));
      if (!text.empty()) {
        return text;
      }
    }
  }
  return {};
}

std::span<const std::byte> ElfFile::at(std::uint64_t address, std::size_t length) const {
  for (const Elf64_Phdr& segment : parts_->segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) {
      continue;
    }
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside <= segment.p_filesz && length <= segment.p_filesz - inside &&
        segment.p_offset + inside >= inside) {
      return parts_->range(segment.p_offset + inside, length);
    }
  }
  return {};
}

std::optional<std::uint64_t> ElfFile::address_of_offset(std::uint64_t offset,
                                                        bool executable) const {
  std::optional<std::uint64_t> other;
  for (const Elf64_Phdr& segment : parts_->segments) {
    const std::uint64_t first = segment.p_offset & ~std::uint64_t{kPageSize - 1};
    if (segment.p_type != PT_LOAD || offset < first ||
        offset - first >= segment.p_filesz + (segment.p_offset - first)) {
      continue;
    }
    const std::uint64_t address = offset - segment.p_offset + segment.p_vaddr;
    if (((segment.p_flags & PF_X) != 0) == executable) {
      return address;
    }
    if (!other) {
      other = address;
    }
  }
  return other;
}

}  // namespace ddpdoctor::stacks
