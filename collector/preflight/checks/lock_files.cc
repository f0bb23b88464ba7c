// SPDX-License-Identifier: Apache-2.0
// Lock files of earlier jobs. torch's extension builder waits forever while a file named "lock"
// exists; files of the filelock package count only while a process holds them.
#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"
#include "collector/sources/files/file_locks.h"
#include "collector/sources/files/file_users.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::preflight::lock_files {
namespace {

constexpr int kDeepest = 6;
constexpr std::size_t kMostFolders = 4000;
constexpr std::size_t kMostLocks = 2000;
constexpr std::size_t kMostTold = 5;

/// Lock files below a folder: named "lock" (torch's baton) or "*.lock" (filelock).
void find_locks(const Setting& setting, const std::string& folder, int depth, std::size_t& folders,
                std::vector<sources::WantedFile>& found) {
  if (depth > kDeepest || ++folders > kMostFolders || found.size() >= kMostLocks) {
    return;
  }
  for (const std::string& name : setting.names(folder)) {
    sources::WantedFile file;
    const std::string path = folder + "/" + name;
    if (!sources::look_at(setting.root + path, file)) {
      continue;
    }
    if (S_ISDIR(file.mode)) {
      find_locks(setting, path, depth + 1, folders, found);
    } else if (S_ISREG(file.mode) && (name == "lock" || name.ends_with(".lock"))) {
      found.push_back(std::move(file));
    }
  }
}

std::vector<std::string> caches(const Setting& setting) {
  const std::string home = setting.variable("HOME").value_or("/root");
  const std::string cache = setting.variable("XDG_CACHE_HOME").value_or(home + "/.cache");
  return {setting.variable("TORCH_EXTENSIONS_DIR").value_or(cache + "/torch_extensions"),
          setting.variable("HF_HOME").value_or(cache + "/huggingface"),
          setting.variable("TRITON_CACHE_DIR").value_or(home + "/.triton"),
          setting.variable("TORCH_HOME").value_or(cache + "/torch")};
}

std::string holder_text(pid_t pid) {
  const auto row = sources::read_process(pid);
  constexpr std::size_t kWidth = 60;
  return fmt::format(
      "process {} ({})", pid,
      row ? base::elide(fmt::format("{}", fmt::join(row->command, " ")), kWidth) : "gone");
}

/// The process that holds a kernel lock on the file; 0 = none.
pid_t locked_by(const std::vector<sources::FileLock>& locks, const sources::WantedFile& file) {
  const auto held =
      std::find_if(locks.begin(), locks.end(), [&file](const sources::FileLock& lock) {
        return !lock.waits && lock.inode == file.id.second;
      });
  return held == locks.end() ? 0 : held->pid;
}

Remark judge_baton(const sources::FileUsers& users, const sources::WantedFile& file,
                   const std::string& shown) {
  if (const auto holders = users.users.find(file.id); holders != users.users.end()) {
    return {.level = Level::kWarning,
            .what = fmt::format("{} is held by {}: a build is in progress", shown,
                                holder_text(*holders->second.begin())),
            .fix = "wait for it, or end it"};
  }
  const bool unseen = users.suspect(file) != nullptr || users.others_hidden;
  if (unseen && sources::holding(file) != sources::Holding::kNobody) {
    return {.level = Level::kWarning,
            .what = fmt::format("{} exists; whether a process holds it is unknown", shown),
            .fix = "run check as root, or on the host of the containers"};
  }
  return {.level = Level::kBreaks,
          .what = fmt::format("{} exists, but no running process holds it: the next build of this "
                              "extension will never finish",
                              shown),
          .fix = fmt::format("rm {}", shown)};
}

Remarks look(const Setting& setting) {
  std::vector<sources::WantedFile> files;
  std::size_t folders = 0;
  for (const std::string& cache : caches(setting)) {
    find_locks(setting, cache, 0, folders, files);
  }
  const sources::FileUsers users =
      files.empty() ? sources::FileUsers{} : sources::users_of_files(files);
  const auto locks = files.empty() ? std::vector<sources::FileLock>{} : sources::read_locks();
  Remarks remarks;
  for (const sources::WantedFile& file : files) {
    const std::string shown = file.path.substr(setting.root.size());
    if (base::file_name(shown) == "lock") {
      remarks.push_back(judge_baton(users, file, shown));
    } else if (const pid_t holder = locked_by(locks, file); holder > 0) {
      remarks.push_back({.level = Level::kWarning,
                         .what = fmt::format("{} is locked by {}", shown, holder_text(holder)),
                         .fix = "ranks that need it will wait until that process releases it"});
    }
  }
  std::stable_sort(remarks.begin(), remarks.end(),
                   [](const Remark& a, const Remark& b) { return a.level > b.level; });
  if (remarks.size() > kMostTold) {
    remarks.resize(kMostTold);
  }
  if (remarks.empty()) {
    remarks.push_back({.level = Level::kOk,
                       .what = fmt::format(
                           "{} lock files in the caches, none of them held or stale", files.size()),
                       .fix = {}});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{.name = "lock-files", .title = "Lock files of earlier jobs", .look = look};

}  // namespace ddpdoctor::preflight::lock_files
