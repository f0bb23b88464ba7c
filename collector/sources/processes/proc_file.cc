// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/proc_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace ddpdoctor::sources {

namespace {

std::optional<std::string> read_all(int fd, std::size_t cap) {
  std::string text;
  std::array<char, 8192> chunk{};
  while (text.size() < cap) {
    const ssize_t got = ::read(fd, chunk.data(), std::min(chunk.size(), cap - text.size()));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && text.empty()) {
      return std::nullopt;
    }
    if (got <= 0) {
      break;
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::string proc_path(pid_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

std::optional<std::string> read_file(const std::string& path, std::size_t cap) {
  return read_file_at(AT_FDCWD, path.c_str(), cap);
}

std::optional<std::string> read_file_at(int folder, const char* name, std::size_t cap) {
  // O_NONBLOCK: opening a path that is a FIFO must not block us.
  const base::UniqueFd fd(::openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    return std::nullopt;
  }
  return read_all(fd.get(), cap);
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) {
    return std::nullopt;
  }
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::vector<int> numbered_entries(const std::string& folder) {
  std::vector<int> numbers;
  struct Close {
    void operator()(DIR* open) const {
      ::closedir(open);
    }
  };
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  if (open == nullptr) {
    return numbers;
  }
  // readdir is safe here: no other thread uses this stream.
  while (const dirent* entry = ::readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (const auto value = number<int>(std::string_view(entry->d_name))) {
      numbers.push_back(*value);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::string> nul_separated(std::string_view text) {
  std::vector<std::string> parts;
  if (!text.empty() && text.back() == '\0') {
    text.remove_suffix(1);
  }
  if (text.empty()) {
    return parts;
  }
  for (const std::string_view part : base::split(text, '\0')) {
    parts.emplace_back(part);
  }
  return parts;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

std::optional<std::string_view> status_field(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return base::trim(line.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::sources
