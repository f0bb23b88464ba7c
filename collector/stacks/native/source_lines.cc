// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/source_lines.h"

#include <algorithm>
#include <array>
#include <fcntl.h>

#include <elfutils/libdw.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/stacks/native/demangle.h"
#include "collector/stacks/native/elf_file.h"
#include "collector/stacks/native/symbols.h"

namespace ddpdoctor::stacks {
namespace {

constexpr off_t kLargestFile = off_t{512} << 20U;  // bytes; larger debug information is not mapped
constexpr int kMostUnits = 20000;  // units searched in a file without an address table

bool unit_has(Dwarf* dwarf, Dwarf_Addr address, Dwarf_Die* unit) {
  if (::dwarf_addrdie(dwarf, address, unit) != nullptr) {
    return true;
  }
  Dwarf_Off offset = 0;
  Dwarf_Off next = 0;
  std::size_t header = 0;
  for (int i = 0; i < kMostUnits &&
                  ::dwarf_nextcu(dwarf, offset, &next, &header, nullptr, nullptr, nullptr) == 0;
       ++i) {
    if (::dwarf_offdie(dwarf, offset + header, unit) != nullptr &&
        ::dwarf_haspc(unit, address) > 0) {
      return true;
    }
    offset = next;
  }
  return false;
}

}  // namespace

struct SourceLines::File {
  explicit File(const std::string& path)
      : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat status{};
    if (fd && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= kLargestFile) {
      dwarf = ::dwarf_begin(fd.get(), DWARF_C_READ);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&&) = delete;
  File& operator=(File&&) = delete;
  ~File() {
    if (dwarf != nullptr) {
      ::dwarf_end(dwarf);
    }
  }

  base::UniqueFd fd;
  Dwarf* dwarf = nullptr;
};

SourceLines::SourceLines() = default;
SourceLines::~SourceLines() = default;

std::optional<SourcePlace> SourceLines::at(const std::string& path, std::uint64_t address) {
  auto& file = files_[path];
  if (!file) {
    file = std::make_unique<File>(path);
  }
  Dwarf_Die unit{};
  if (file->dwarf == nullptr || !unit_has(file->dwarf, address, &unit)) {
    return std::nullopt;
  }
  Dwarf_Line* const line = ::dwarf_getsrc_die(&unit, address);
  int number = 0;
  const char* const source = line == nullptr ? nullptr : ::dwarf_linesrc(line, nullptr, nullptr);
  if (source == nullptr || ::dwarf_lineno(line, &number) != 0 || number <= 0) {
    return std::nullopt;
  }
  return SourcePlace{.file = base::printable(source), .line = number};
}

bool may_be_user_code(std::string_view path) {
  constexpr std::array<std::string_view, 6> kSystem = {"/usr/",  "/lib",   "/bin/",
                                                       "/sbin/", "/proc/", "["};
  constexpr std::array<std::string_view, 14> kParts = {
      "libmpi", "libpmpi", "libopen-", "libuc",        "libfabric", "libpmix", "libprrte",
      "libpmi", "libpsm",  "libevent", "libddpdoctor", "mca_",      "python",  "libpython"};
  if (path.empty() || path.front() != '/') {
    return false;
  }
  const std::string_view name = base::file_name(path);
  return std::none_of(kSystem.begin(), kSystem.end(),
                      [&path](std::string_view start) { return path.starts_with(start); }) &&
         std::none_of(kParts.begin(), kParts.end(),
                      [name](std::string_view start) { return name.starts_with(start); });
}

CodePlace place_in_code(SourceLines& lines, const std::string& path, std::uint64_t address) {
  CodePlace place;
  if (const auto file = ElfFile::open(path)) {
    const auto names = function_names(**file, std::span(&address, 1));
    place.function = names.empty() ? std::string() : readable_function(names.front());
  }
  place.source = lines.at(path, address).value_or(SourcePlace{});
  return place;
}

}  // namespace ddpdoctor::stacks
