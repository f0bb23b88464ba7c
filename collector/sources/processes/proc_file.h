// SPDX-License-Identifier: Apache-2.0
// Reads the small files of /proc. Knows nothing about jobs; every size is limited, because
// processes write some of these texts themselves (comm, cmdline, environ).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::sources {

/// Most /proc files fit easily; callers read environ and maps with a larger limit.
constexpr std::size_t kSmallFile = std::size_t{256} * 1024;
constexpr std::size_t kLargeFile = std::size_t{16} * 1024 * 1024;

/// "/proc/PID/name".
std::string proc_path(pid_t pid, std::string_view name);

/// Content of a file, cut at `cap` bytes; nothing if it cannot be opened or the first read fails.
std::optional<std::string> read_file(const std::string& path, std::size_t cap = kSmallFile);

/// The same, relative to an open folder.
std::optional<std::string> read_file_at(int folder, const char* name, std::size_t cap = kSmallFile);

/// Target of a symbolic link; nothing if it cannot be read.
std::optional<std::string> read_link(const std::string& path);

/// Names in a folder that are decimal numbers, ascending: pids, tids, descriptors.
std::vector<int> numbered_entries(const std::string& folder);

/// "a\0b\0" → {a, b}. A missing final NUL is accepted.
std::vector<std::string> nul_separated(std::string_view text);

/// Words between runs of spaces and tabs.
std::vector<std::string_view> words(std::string_view text);

/// The trimmed value after "Name:" at the start of a line of /proc/PID/status or a similar file.
std::optional<std::string_view> status_field(std::string_view text, std::string_view name);

/// The whole text as a number, or nothing.
template <typename Number>
std::optional<Number> number(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace ddpdoctor::sources
