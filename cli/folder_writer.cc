// SPDX-License-Identifier: Apache-2.0
#include "cli/folder_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "cli/write_failure.h"

namespace ddpdoctor::cli {

namespace {

namespace fs = std::filesystem;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

bool is_ours(const fs::directory_entry& entry) {
  constexpr std::string_view kPrefix = "rank_";
  const std::string name = entry.path().filename().string();
  std::error_code error;
  return entry.is_regular_file(error) && !entry.is_symlink(error) && name.starts_with(kPrefix) &&
         name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

bool holds_only_ours(const std::string& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  return !error && std::all_of(begin(entries), end(entries), is_ours);
}

/// A new folder next to the target that is removed unless it was renamed.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& target) {
    const std::size_t slash = target.rfind('/');
    name_ = (slash == std::string::npos ? "" : target.substr(0, slash + 1)) + ".ddpdoctor-XXXXXX";
    error_ = ::mkdtemp(name_.data()) == nullptr ? errno : 0;
    if (error_ == 0) {
      const mode_t mask = ::umask(0);
      ::umask(mask);
      ::chmod(name_.c_str(), 0777 & ~mask);  // NOLINT: mkdtemp's is for the owner alone
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  TemporaryFolder(TemporaryFolder&&) = delete;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    if (error_ == 0) {
      std::error_code ignored;
      fs::remove_all(name_, ignored);
    }
  }

  [[nodiscard]] int error() const {
    return error_;
  }
  [[nodiscard]] const std::string& name() const {
    return name_;
  }

 private:
  std::string name_;
  int error_ = 0;
};

/// Returns 0 or the errno of the first step that failed.
int write_file(const std::string& path, std::string_view bytes, double time) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) {
    return errno;
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  if (time > 0 && time < 1e11) {
    const double seconds = std::floor(time);
    const timespec at{.tv_sec = static_cast<time_t>(seconds),
                      .tv_nsec = static_cast<long>((time - seconds) * 1e9)};
    const std::array<timespec, 2> times{at, at};
    ::futimens(fd.get(), times.data());  // only a hint for readers
  }
  return ::fsync(fd.get()) == 0 ? 0 : errno;
}

}  // namespace

base::Result<void> check_writable_folder(const std::string& path) {
  const std::string target = without_slashes(path);
  struct stat status{};
  if (::lstat(target.c_str(), &status) == 0) {
    if (!S_ISDIR(status.st_mode)) {
      return cannot_write(path, "it is not a folder");
    }
    if (!holds_only_ours(target)) {
      return cannot_write(path, "it is a folder with other files in it");
    }
  } else if (errno != ENOENT) {
    return cannot_write(path, reason(errno));
  }
  const TemporaryFolder probe(target);
  if (probe.error() != 0) {
    return cannot_write(path, probe.error() == ENOENT ? "the folder above it does not exist"
                                                      : reason(probe.error()));
  }
  return {};
}

base::Result<void> write_whole_folder(const std::string& path, const Folder& folder) {
  const std::string target = without_slashes(path);
  if (auto writable = check_writable_folder(path); !writable) {
    return writable;
  }
  const TemporaryFolder fresh(target);
  const TemporaryFolder old(target);
  if (fresh.error() != 0 || old.error() != 0) {
    return cannot_write(path, reason(std::max(fresh.error(), old.error())));
  }
  for (const auto& [name, bytes] : folder.files) {
    if (const int error = write_file(fresh.name() + "/" + name, bytes, folder.time); error != 0) {
      return cannot_write(path, reason(error));
    }
  }
  // rename() replaces only an empty folder: the old one is moved away and removed with `old`.
  if (::rename(target.c_str(), old.name().c_str()) != 0 && errno != ENOENT) {
    return cannot_write(path, reason(errno));
  }
  if (::rename(fresh.name().c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(old.name().c_str(), target.c_str());
    return cannot_write(path, reason(error));
  }
  return {};
}

}  // namespace ddpdoctor::cli
