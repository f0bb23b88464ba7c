// SPDX-License-Identifier: Apache-2.0
#include "cli/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/encoding.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace ddpdoctor::cli {

namespace {

constexpr off_t kLargestFile = off_t{1} << 30U;

base::Error cannot_read(const std::string& path, int error) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
  return {.what = fmt::format("{} cannot be read: {}", path, std::strerror(error)), .hint = {}};
}

struct Opened {
  base::UniqueFd fd;
  std::size_t size = 0;
  double written = 0;  // seconds since the epoch
};

base::Result<Opened> open_regular(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would block.
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return tl::make_unexpected(cannot_read(path, errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return base::failure(fmt::format("{} cannot be read: it is not a regular file", path));
  }
  if (status.st_size > kLargestFile) {
    return base::failure(fmt::format("{} cannot be read: {} are more than the {} that are allowed",
                                     path, base::bytes(static_cast<double>(status.st_size)),
                                     base::bytes(static_cast<double>(kLargestFile))));
  }
  return Opened{.fd = std::move(fd),
                .size = static_cast<std::size_t>(status.st_size),
                .written = static_cast<double>(status.st_mtim.tv_sec) +
                           static_cast<double>(status.st_mtim.tv_nsec) * 1e-9};
}

base::Result<double> read_at_most(const std::string& path, std::size_t limit, std::string& bytes) {
  const Opened file = TRY(open_regular(path));
  bytes.resize(std::min(file.size, limit));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno != EINTR) {
      return tl::make_unexpected(cannot_read(path, errno));
    }
    if (got == 0) {
      break;  // it shrank in the meantime
    }
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  bytes.resize(have);
  bytes = base::as_utf8(std::move(bytes));
  return file.written;
}

}  // namespace

base::Result<std::string> read_head(const std::string& path) {
  std::string bytes;
  TRY(read_at_most(path, kHead, bytes));
  return bytes;
}

base::Result<std::string> read_tail(const std::string& path) {
  const Opened file = TRY(open_regular(path));
  std::string bytes(std::min(file.size, kHead), '\0');
  const ssize_t got = ::pread(file.fd.get(), bytes.data(), bytes.size(),
                              static_cast<off_t>(file.size - bytes.size()));
  if (got < 0) {
    return tl::make_unexpected(cannot_read(path, errno));
  }
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

base::Result<std::string> read_file(const std::string& path) {
  std::string bytes;
  TRY(read_file_into(path, bytes));
  return bytes;
}

base::Result<double> read_file_into(const std::string& path, std::string& bytes) {
  return read_at_most(path, static_cast<std::size_t>(kLargestFile), bytes);
}

}  // namespace ddpdoctor::cli
