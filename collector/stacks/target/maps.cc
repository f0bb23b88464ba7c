// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/maps.h"

#include <algorithm>
#include <charconv>
#include <fcntl.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/target/proc_file.h"

namespace ddpdoctor::stacks {

namespace {

bool parse_number(std::string_view word, int radix, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, radix);
  return error == std::errc{} && end == word.data() + word.size();
}

bool parse_pair(std::string_view word, char separator, std::uint64_t& first,
                std::uint64_t& second) {
  const std::size_t middle = word.find(separator);
  return middle != std::string_view::npos && parse_number(word.substr(0, middle), 16, first) &&
         parse_number(word.substr(middle + 1), 16, second);
}

/// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/x.so (deleted)", as proc(5) describes it.
bool parse_line(std::string_view line, Mapping& mapping) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  if (!parse_pair(next_word(line), '-', mapping.start, mapping.end)) {
    return false;
  }
  const std::string_view permissions = next_word(line);
  if (permissions.size() != 4 || mapping.start >= mapping.end ||
      !parse_number(next_word(line), 16, mapping.offset) ||
      !parse_pair(next_word(line), ':', major, minor) ||
      !parse_number(next_word(line), 10, mapping.inode)) {
    return false;
  }
  mapping.readable = permissions[0] == 'r';
  mapping.writable = permissions[1] == 'w';
  mapping.executable = permissions[2] == 'x';
  mapping.device = major << 32U | minor;
  std::string_view path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  if (path.ends_with(kDeleted)) {
    mapping.deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  mapping.path = path;
  return true;
}

}  // namespace

base::Result<Maps> Maps::of(pid_t pid) {
  return parse(TRY(read_proc_file(AT_FDCWD, fmt::format("/proc/{}/maps", pid))));
}

base::Result<Maps> Maps::parse(std::string_view text) {
  Maps maps;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    Mapping mapping;
    if (!parse_line(text.substr(0, end), mapping)) {
      return base::failure(
          fmt::format("line {} of the maps cannot be read: {}", number,
                      base::printable(text.substr(0, std::min<std::size_t>(end, 80)))));
    }
    // The kernel writes page by page: a mapping that changed in between may appear twice. The later
    // line is newer.
    while (!maps.mappings_.empty() && maps.mappings_.back().end > mapping.start) {
      maps.mappings_.pop_back();
    }
    maps.mappings_.push_back(std::move(mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return maps;
}

const Mapping* Maps::find(RemoteAddress address) const {
  const auto after = std::upper_bound(
      mappings_.begin(), mappings_.end(), address,
      [](RemoteAddress wanted, const Mapping& mapping) { return wanted < mapping.start; });
  if (after == mappings_.begin()) {
    return nullptr;
  }
  const Mapping& mapping = *(after - 1);
  return address < mapping.end ? &mapping : nullptr;
}

}  // namespace ddpdoctor::stacks
