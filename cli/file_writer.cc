// SPDX-License-Identifier: Apache-2.0
#include "cli/file_writer.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "cli/write_failure.h"

namespace ddpdoctor::cli {

namespace {

/// The final target: symbolic links are followed, so that they stay links.
std::string real_target(const std::string& path) {
  constexpr int kMostLinks = 16;
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(target, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) {
      break;
    }
    target = target.parent_path() / next;  // an absolute link replaces the whole path
  }
  return target.string();
}

/// Why open() failed with ENOENT: for example, /proc exists but accepts no files.
std::string no_file_there(const std::string& target) {
  const std::filesystem::path folder = std::filesystem::path(target).parent_path();
  std::error_code error;
  return folder.empty() || std::filesystem::is_directory(folder, error)
             ? "no file can be created in its folder"
             : "its folder does not exist";
}

/// A new file next to the target that is removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) {
    const std::size_t slash = target.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
    constexpr int kTries = 100;  // names left by a killed ddpdoctor with the same pid
    for (int i = 0; i < kTries && !fd_; ++i) {
      name_ = fmt::format("{}.ddpdoctor-{}-{}", folder, ::getpid(), i);
      fd_.reset(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!fd_ && errno != EEXIST) {
        error_ = errno;
        return;
      }
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (fd_) {
      ::unlink(name_.c_str());
    }
  }

  [[nodiscard]] bool open() const {
    return static_cast<bool>(fd_);
  }
  [[nodiscard]] int error() const {
    return error_;
  }

  /// Returns 0 or the errno of the first step that failed.
  int write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_.get(), text.data(), text.size());
      if (written < 0 && errno != EINTR) {
        return errno;
      }
      text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    return ::fsync(fd_.get()) == 0 ? 0 : errno;
  }

  int rename_to(const std::string& target) {
    if (::rename(name_.c_str(), target.c_str()) != 0) {
      return errno;
    }
    fd_.reset();
    return 0;
  }

 private:
  std::string name_;
  base::UniqueFd fd_;
  int error_ = EEXIST;
};

}  // namespace

base::Result<void> check_writable(const std::string& path) {
  const std::string target = real_target(path);
  struct stat status{};
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      return cannot_write(path, "it is a folder");
    }
    if (!S_ISREG(status.st_mode)) {
      return cannot_write(path, "it is not a regular file");
    }
  } else if (errno != ENOENT) {
    return cannot_write(path, reason(errno));
  }
  const TemporaryFile probe(target);
  if (!probe.open()) {
    return cannot_write(path,
                        probe.error() == ENOENT ? no_file_there(target) : reason(probe.error()));
  }
  return {};
}

base::Result<void> write_whole(const std::string& path, std::string_view text) {
  const std::string target = real_target(path);
  TemporaryFile file(target);
  if (!file.open()) {
    return cannot_write(path, reason(file.error()));
  }
  if (const int error = file.write(text); error != 0) {
    return cannot_write(path, reason(error));
  }
  if (const int error = file.rename_to(target); error != 0) {
    return cannot_write(path, reason(error));
  }
  return {};
}

}  // namespace ddpdoctor::cli
