// SPDX-License-Identifier: Apache-2.0
// Which live processes map a file or have it open: the question before anything is called left
// behind. Who could not be asked is told, because not seen is not unused.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace ddpdoctor::sources {

/// A file whatever its name.
using FileId = std::pair<dev_t, ino_t>;

/// A file that somebody may use.
struct WantedFile {
  std::string path;
  FileId id;
  uid_t owner = 0;
  mode_t mode = 0;
};

/// The file at `path`, not followed when it is a link; false when there is none.
bool look_at(const std::string& path, WantedFile& file);

/// What the kernel itself says of a file's users, seen and unseen.
enum class Holding { kNobody, kSomebody, kCannotTell };

/// Asks by a write lease, which is granted only while nobody else has the file open or mapped
/// (fcntl(2), F_SETLEASE) and given back at once. For files of ours on this machine only.
Holding holding(const WantedFile& file);

/// A live process that could not be asked.
struct Unasked {
  pid_t pid = 0;
  uid_t uid = 0;
  std::string command;
  bool runs_python = false;
};

struct FileUsers {
  std::map<FileId, std::set<pid_t>> users;
  std::vector<Unasked> unasked;
  /// Processes outside this container may share the files and cannot be seen at all.
  bool others_hidden = false;

  [[nodiscard]] bool used(const WantedFile& file) const;
  /// A process that could not be asked and whose user may open the file. Root may open anything,
  /// but of its processes only those count that could be a job: they run Python.
  [[nodiscard]] const Unasked* suspect(const WantedFile& file) const;
};

/// Reads maps and descriptors of every process of this machine.
FileUsers users_of_files(const std::vector<WantedFile>& files);

}  // namespace ddpdoctor::sources
