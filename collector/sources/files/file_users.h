// SPDX-License-Identifier: Apache-2.0
// The running processes that map a file or have it open: checked before anything is called left
// behind. Processes that could not be checked are listed, because unseen is not unused.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace ddpdoctor::sources {

/// Identifies a file independent of its name.
using FileId = std::pair<dev_t, ino_t>;

/// A file whose users are wanted.
struct WantedFile {
  std::string path;
  FileId id;
  uid_t owner = 0;
  mode_t mode = 0;
};

/// Describes the file at `path` without following links; false if there is none.
bool look_at(const std::string& path, WantedFile& file);

/// What the kernel reports about a file's users, visible or not.
enum class Holding { kNobody, kSomebody, kCannotTell };

/// Tries to get a write lease, which the kernel grants only if no other process has the file open
/// or mapped (fcntl(2), F_SETLEASE), and returns it immediately. Only for our own files on this
/// machine.
Holding holding(const WantedFile& file);

/// A running process that could not be checked.
struct Unasked {
  pid_t pid = 0;
  uid_t uid = 0;
  std::string command;
  bool runs_python = false;
};

struct FileUsers {
  std::map<FileId, std::set<pid_t>> users;
  std::vector<Unasked> unasked;
  /// Processes outside this container may share the files and are invisible.
  bool others_hidden = false;

  [[nodiscard]] bool used(const WantedFile& file) const;
  /// An unchecked process whose user may open the file. Root may open any file, but of root's
  /// processes only those that run Python count, because only they can be a job.
  [[nodiscard]] const Unasked* suspect(const WantedFile& file) const;
};

/// Reads maps and descriptors of every process of this machine.
FileUsers users_of_files(const std::vector<WantedFile>& files);

}  // namespace ddpdoctor::sources
