// SPDX-License-Identifier: Apache-2.0
#include "cli/piped_input.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/unique_fd.h"

namespace ddpdoctor::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargest = std::size_t{1} << 30U;

/// The descriptor that a path names.
std::optional<int> descriptor_of(const std::string& path) {
  if (path == "-" || path == "/dev/stdin") {
    return STDIN_FILENO;
  }
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    const char* const end = path.data() + path.size();
    int number = 0;
    if (path.starts_with(folder)) {
      const auto [last, error] = std::from_chars(path.data() + folder.size(), end, number);
      return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
    }
  }
  return std::nullopt;
}

auto failed(const std::string& path, int error) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
  return base::failure(fmt::format("{} cannot be read: {}", path, std::strerror(error)));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  return true;
}

std::string spoken(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

/// Copies until the other end is closed.
base::Result<void> copy(int from, int to, const std::string& name) {
  std::array<char, std::size_t{64} << 10U> buffer{};
  for (std::size_t size = 0;;) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got == 0) {
      return {};
    }
    if (got < 0 && errno != EINTR) {
      return failed(name, errno);
    }
    const std::size_t taken = got > 0 ? static_cast<std::size_t>(got) : 0;
    size += taken;
    if (size > kLargest) {
      return base::failure(fmt::format("{} cannot be read: it is more than 1 GiB", name));
    }
    if (!write_all(to, std::string_view(buffer.data(), taken))) {
      return failed(name, errno);
    }
  }
}

}  // namespace

PipedInputs::~PipedInputs() {
  if (!folder_.empty()) {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
}

base::Result<std::string> PipedInputs::new_copy(const std::string& given) {
  if (folder_.empty()) {
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    std::string name = (error ? fs::path("/tmp") : temporary) / "ddpdoctor-piped-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      return failed(name, errno);
    }
    folder_ = name;
    if (::mkdir((folder_ + "/piped").c_str(), 0700) != 0) {
      return failed(name, errno);
    }
  }
  // Without a number, which would be taken for a rank.
  copies_.emplace_back(folder_ + "/piped/input" + std::string(copies_.size(), '_'), spoken(given));
  return copies_.back().first;
}

base::Result<std::string> PipedInputs::file_for(const std::string& path) {
  const auto descriptor = descriptor_of(path);
  if (!descriptor) {
    return path;
  }
  struct stat status{};
  if (::fstat(*descriptor, &status) != 0) {
    return failed(spoken(path), errno);
  }
  if (S_ISREG(status.st_mode)) {
    return path == "-" ? std::string("/dev/stdin") : path;
  }
  if (S_ISDIR(status.st_mode)) {
    return path;
  }
  const std::string file = TRY(new_copy(path));
  const base::UniqueFd to(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to) {
    return failed(file, errno);
  }
  if (const auto copied = copy(*descriptor, to.get(), spoken(path)); !copied) {
    return tl::make_unexpected(copied.error());
  }
  return file;
}

base::Result<std::string> PipedInputs::file_with(std::string_view bytes, const std::string& given) {
  const std::string file = TRY(new_copy(given));
  const base::UniqueFd to(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to || !write_all(to.get(), bytes)) {
    return failed(file, errno);
  }
  return file;
}

std::string PipedInputs::as_given(std::string sentence) const {
  for (auto copy = copies_.rbegin(); copy != copies_.rend(); ++copy) {  // the longest name first
    const auto& [file, name] = *copy;
    for (std::size_t at = sentence.find(file); at != std::string::npos;
         at = sentence.find(file, at + name.size())) {
      sentence.replace(at, file.size(), name);
    }
  }
  return sentence;
}

}  // namespace ddpdoctor::cli
