// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/maps.h"

#include <algorithm>
#include <fcntl.h>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/target/proc_file.h"

namespace ddpdoctor::stacks {

namespace {

constexpr unsigned kNoDigit = 255;

constexpr unsigned digit_of(char letter) {
  if (letter >= '0' && letter <= '9') {
    return static_cast<unsigned>(letter - '0');
  }
  return letter >= 'a' && letter <= 'f' ? static_cast<unsigned>(letter - 'a') + 10 : kNoDigit;
}

/// Takes the digits before `end` and `end` itself from the start of `line`. A job has thousands of
/// these lines, so each byte is looked at once.
template <unsigned kRadix>
bool take_number(std::string_view& line, char end, std::uint64_t& value) {
  constexpr std::uint64_t kLargest = ~std::uint64_t{0} / kRadix;
  std::size_t at = 0;
  value = 0;
  for (; at < line.size() && line[at] != end; ++at) {
    const unsigned digit = digit_of(line[at]);
    if (digit >= kRadix || value > kLargest || value * kRadix + digit < digit) {
      return false;
    }
    value = value * kRadix + digit;
  }
  if (at == 0) {
    return false;
  }
  line.remove_prefix(std::min(at + 1, line.size()));
  return true;
}

/// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/x.so (deleted)", as proc(5) describes it.
bool parse_line(std::string_view line, Mapping& mapping) {
  constexpr std::string_view kDeleted = " (deleted)";
  constexpr std::size_t kPermissions = 4;
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  if (!take_number<16>(line, '-', mapping.start) || !take_number<16>(line, ' ', mapping.end) ||
      mapping.start >= mapping.end || line.size() <= kPermissions || line[kPermissions] != ' ') {
    return false;
  }
  mapping.readable = line[0] == 'r';
  mapping.writable = line[1] == 'w';
  mapping.executable = line[2] == 'x';
  line.remove_prefix(kPermissions + 1);
  if (!take_number<16>(line, ' ', mapping.offset) || !take_number<16>(line, ':', major) ||
      !take_number<16>(line, ' ', minor) || !take_number<10>(line, ' ', mapping.inode)) {
    return false;
  }
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

base::Result<Maps> Maps::parse(std::string content) {
  constexpr std::size_t kUsualLine = 100;
  Maps maps;
  maps.text_ = std::make_shared<const std::string>(std::move(content));
  std::string_view text = *maps.text_;
  maps.mappings_.reserve(text.size() / kUsualLine);
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
    maps.mappings_.push_back(mapping);
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
