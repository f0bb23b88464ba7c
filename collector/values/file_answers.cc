// SPDX-License-Identifier: Apache-2.0
#include "collector/values/file_answers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/unique_fd.h"

namespace ddpdoctor::values {

namespace {

constexpr int kMostQuestions = 16;  // per process
constexpr std::size_t kMostEntries = 4096;

struct Found {
  base::UniqueFd fd;  // the opened file or folder
  int error = 0;
};

/// Opens a path below the root directory of the process, without following symbolic links.
Found open_below(const base::UniqueFd& root, const std::string& path, unsigned long flags) {
  struct open_how how{};
  how.flags = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS;
  const long fd = ::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how);
  return fd < 0 ? Found{.fd = {}, .error = errno}
                : Found{.fd = base::UniqueFd(static_cast<int>(fd)), .error = 0};
}

Value entries_of(base::UniqueFd folder) {
  const auto close = [](DIR* one) { ::closedir(one); };
  const std::unique_ptr<DIR, decltype(close)> open(::fdopendir(folder.get()), close);
  if (!open) {
    return Value::unknown("a folder that cannot be read");
  }
  static_cast<void>(folder.release());
  std::vector<Value> names;
  while (const dirent* const entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(Value::string(name));
    }
    if (names.size() > kMostEntries) {
      return Value::unknown("a folder of many files");
    }
  }
  return Value::sequence("list", std::move(names));
}

}  // namespace

bool FileAnswers::is_local(const std::string& path) {
  if (!mounts_) {
    mounts_ = sources::mounts_of(pid_);
  }
  const auto mount = sources::mount_of_path(*mounts_, path);
  return mount && !mount->remote() && mount->type != "autofs";
}

std::optional<Value> FileAnswers::ask(std::string_view question, const std::string& path) {
  constexpr auto kQuestions = std::to_array<std::string_view>(
      {"exists", "isfile", "is_file", "isdir", "is_dir", "listdir"});
  if (std::ranges::find(kQuestions, question) == kQuestions.end() || path.empty() ||
      path.size() > PATH_MAX || ++asked_ > kMostQuestions) {
    return std::nullopt;
  }
  std::string whole = path;
  if (!path.starts_with('/')) {
    std::array<char, PATH_MAX> folder{};
    const ssize_t size =
        ::readlink(fmt::format("/proc/{}/cwd", pid_).c_str(), folder.data(), folder.size());
    if (size <= 0 || static_cast<std::size_t>(size) >= folder.size()) {
      return std::nullopt;
    }
    whole = std::string(folder.data(), static_cast<std::size_t>(size));
    if (whole.ends_with(" (deleted)")) {
      return std::nullopt;
    }
    whole += "/" + path;
  }
  const base::UniqueFd root(
      ::open(fmt::format("/proc/{}/root", pid_).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root || !is_local(whole)) {
    return std::nullopt;
  }
  const bool lists = question == "listdir";
  Found found = open_below(root, whole, lists ? O_RDONLY | O_DIRECTORY : O_PATH);
  if (found.error == ENOENT || found.error == ENOTDIR) {
    return lists ? std::nullopt : std::optional(Value::boolean(false));
  }
  struct stat status{};
  if (found.error != 0 || ::fstat(found.fd.get(), &status) != 0) {
    return std::nullopt;
  }
  if (lists) {
    return entries_of(std::move(found.fd));
  }
  const bool wants_file = question.ends_with("file");
  const bool wants_folder = question.ends_with("dir");
  return Value::boolean(wants_file     ? S_ISREG(status.st_mode)
                        : wants_folder ? S_ISDIR(status.st_mode)
                                       : true);
}

}  // namespace ddpdoctor::values
