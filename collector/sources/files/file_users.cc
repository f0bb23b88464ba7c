// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/files/file_users.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/files/descriptors.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::sources {

namespace {

using ByName = std::multimap<std::string, const WantedFile*, std::less<>>;

std::string_view without_mark(std::string_view path) {
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

/// The last path component and the inode must match; the device is ignored because overlay file
/// systems show another one in maps. Too many users is the safe error.
void count_mapping(std::string_view line, const ByName& names, pid_t pid, FileUsers& out) {
  const auto fields = words(line);
  constexpr std::size_t kInode = 4;
  if (fields.size() <= kInode + 1 || line.find('/') == std::string_view::npos) {
    return;
  }
  const std::string_view path =
      without_mark(line.substr(line.find('/', line.find(fields[kInode]))));
  const auto inode = number<ino_t>(fields[kInode]);
  const auto [first, last] = names.equal_range(base::file_name(path));
  for (auto it = first; it != last; ++it) {
    if (inode == it->second->id.second) {
      out.users[it->second->id].insert(pid);
    }
  }
}

/// False if the folder is not readable.
bool count_descriptors(pid_t pid, const std::string& process, const ByName& names, FileUsers& out) {
  struct Close {
    void operator()(DIR* open) const {
      ::closedir(open);
    }
  };
  const std::string folder = process + "/fd";
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  if (open == nullptr) {
    return false;
  }
  while (const dirent* entry = ::readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string link = folder + "/" + entry->d_name;
    const auto target = read_link(link);
    const auto [first, last] =
        names.equal_range(base::file_name(without_mark(target.value_or(""))));
    struct stat state{};
    for (auto it = first; it != last; ++it) {
      // Only a descriptor with that name is checked, because others may be on a server that does
      // not answer.
      if (::stat(link.c_str(), &state) == 0 && state.st_ino == it->second->id.second) {
        out.users[it->second->id].insert(pid);
      }
    }
  }
  return true;
}

void remember_unasked(pid_t pid, FileUsers& out) {
  const auto row = read_process(pid);
  if (!row || row->state == 'X' || row->kernel_thread) {
    return;  // it exited during the check
  }
  const Program program = program_of(*row);
  out.unasked.push_back(
      {.pid = pid,
       .uid = row->uid,
       .command = base::elide(base::printable(fmt::format("{}", fmt::join(row->command, " "))), 60),
       .runs_python = runs_python(program) || program == Program::kShmManager ||
                      row->comm.starts_with("pt_")});
}

/// False if any part is not readable or too long to be read completely.
bool count_all(pid_t pid, const std::string& process, const ByName& names, FileUsers& out) {
  const auto maps = read_file(process + "/maps", kLargeFile);
  if (maps) {
    for (const std::string_view line : base::split(*maps, '\n')) {
      count_mapping(line, names, pid, out);
    }
  }
  return count_descriptors(pid, process, names, out) && maps && maps->size() < kLargeFile;
}

/// The folders of /proc to read: the process, or its other threads if the main thread has exited.
std::vector<std::string> places(pid_t pid) {
  const auto row = read_process(pid);
  if (!row || row->state != 'Z') {
    return {fmt::format("/proc/{}", pid)};
  }
  std::vector<std::string> threads;
  for (const int tid : numbered_entries(proc_path(pid, "task"))) {
    if (tid != pid) {
      threads.push_back(fmt::format("/proc/{}/task/{}", pid, tid));
    }
  }
  return threads;
}

/// Our pids are local to a container but shared memory is not: a container with the host's IPC
/// namespace.
bool hides_others() {
  constexpr std::string_view kFirstPids = "pid:[4026531836]";  // PROC_PID_INIT_INO
  constexpr std::string_view kFirstShm = "ipc:[4026531839]";   // PROC_IPC_INIT_INO
  return read_link("/proc/self/ns/pid") != kFirstPids &&
         read_link("/proc/self/ns/ipc") == kFirstShm;
}

}  // namespace

bool look_at(const std::string& path, WantedFile& file) {
  struct stat state{};
  if (::lstat(path.c_str(), &state) != 0) {
    return false;
  }
  file = {.path = path,
          .id = {state.st_dev, state.st_ino},
          .owner = state.st_uid,
          .mode = state.st_mode};
  return true;
}

Holding holding(const WantedFile& file) {
  if (!S_ISREG(file.mode)) {
    return Holding::kCannotTell;
  }
  const base::UniqueFd fd(
      ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat state{};
  if (!fd || ::fstat(fd.get(), &state) != 0 || FileId{state.st_dev, state.st_ino} != file.id) {
    return Holding::kCannotTell;
  }
  // If a process opens the file at this moment, the kernel notifies us; choose a signal that is
  // ignored.
  ::fcntl(fd.get(), F_SETSIG, SIGURG);
  if (::fcntl(fd.get(), F_SETLEASE, F_WRLCK) == 0) {
    ::fcntl(fd.get(), F_SETLEASE, F_UNLCK);
    return Holding::kNobody;
  }
  return errno == EAGAIN ? Holding::kSomebody : Holding::kCannotTell;
}

bool FileUsers::used(const WantedFile& file) const {
  const auto found = users.find(file.id);
  return found != users.end() && !found->second.empty();
}

const Unasked* FileUsers::suspect(const WantedFile& file) const {
  const auto found = std::find_if(unasked.begin(), unasked.end(), [&file](const Unasked& process) {
    constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
    return process.uid == file.owner ||
           (process.runs_python && (process.uid == 0 || (file.mode & kOthers) != 0));
  });
  return found == unasked.end() ? nullptr : &*found;
}

FileUsers users_of_files(const std::vector<WantedFile>& files) {
  FileUsers out;
  out.others_hidden = hides_others();
  ByName names;
  for (const WantedFile& file : files) {
    names.emplace(base::file_name(file.path), &file);
  }
  for (const int pid : numbered_entries("/proc")) {
    for (const std::string& place : places(pid)) {
      if (!count_all(pid, place, names, out)) {
        remember_unasked(pid, out);
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::sources
