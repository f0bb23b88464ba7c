// SPDX-License-Identifier: Apache-2.0
// Open descriptors of processes and, inversely, the processes that hold the other end of a pipe,
// FIFO or socket.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::sources {

inline constexpr std::string_view kDeleted = " (deleted)";  // behind the name of a link's target

enum class DescriptorKind {
  kFile,
  kPipe,
  kSocket,
  kTty,
  kShm,
  kDevice,
  kEventFd,
  kEpoll,
  kInotify,
  kPidFd,
  kAnonymous,
  kOther
};

/// One descriptor as its link in /proc/PID/fd shows it.
struct Descriptor {
  int fd = -1;
  DescriptorKind kind = DescriptorKind::kOther;
  std::uint64_t inode = 0;  // for pipes and sockets
  std::string link;         // "pipe:[17]", "socket:[18]", "/path", "anon_inode:[eventfd]"
  bool deleted = false;     // a file without a name; `link` omits the mark "(deleted)"
};

/// Parses a link's text.
Descriptor parse_descriptor(int fd, std::string_view link);

/// One descriptor of a process; nothing if it is not open or not readable.
std::optional<Descriptor> descriptor(pid_t pid, int fd);

/// All of them, ascending.
std::vector<Descriptor> descriptors_of(pid_t pid);

/// "pipe", "socket", "shm", "file", …; used for counting.
std::string_view kind_name(DescriptorKind kind);

struct OpenMode {
  bool reads = false;
  bool writes = false;
};
/// How a descriptor was opened; nothing if it is not open or not readable.
std::optional<OpenMode> open_mode(pid_t pid, int fd);

/// A process that has something open.
struct Holder {
  pid_t pid = 0;
  int fd = -1;
};

/// Descriptors of all processes of a job, read once; those of other processes are read only on
/// demand.
class DescriptorTable {
 public:
  explicit DescriptorTable(std::vector<pid_t> job) : job_(std::move(job)) {}

  const std::vector<Descriptor>& of(pid_t pid);

  /// Processes of the job that have this link open.
  const std::vector<Holder>& holders(const std::string& link);
  /// Processes of the whole machine that have it open; reads every process's descriptors once.
  const std::vector<Holder>& holders_anywhere(const std::string& link);

 private:
  void read_job();
  void read_machine();
  void add(pid_t pid);

  std::vector<pid_t> job_;
  bool job_read_ = false;
  bool machine_read_ = false;
  std::map<pid_t, std::vector<Descriptor>> by_pid_;
  std::map<std::string, std::vector<Holder>, std::less<>> by_link_;
};

}  // namespace ddpdoctor::sources
