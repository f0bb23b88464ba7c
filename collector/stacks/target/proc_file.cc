// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/proc_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include "base/text.h"

namespace ddpdoctor::stacks {

base::Result<std::string> read_proc_file(int folder, const std::string& path) {
  const base::UniqueFd fd(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return base::failure(path + ": " + std::generic_category().message(errno));
  }
  std::string content;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t count = ::read(fd.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return base::failure(path + ": " + std::generic_category().message(errno));
    }
    content.append(chunk.data(), static_cast<std::size_t>(count));
    // For small files, a short read means the end; only files like maps arrive in pieces of any
    // size.
    if (count == 0 || (static_cast<std::size_t>(count) < 512 && content.size() < 512)) {
      return content;
    }
  }
}

std::optional<std::string_view> status_field(std::string_view status, std::string_view key) {
  while (!status.empty()) {
    const std::size_t end = status.find('\n');
    const std::string_view line = status.substr(0, end);
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':') {
      return base::trim(line.substr(key.size() + 1));
    }
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    status.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::string_view next_word(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  text.remove_prefix(begin);
  const std::size_t length = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

}  // namespace ddpdoctor::stacks
