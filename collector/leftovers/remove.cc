// SPDX-License-Identifier: Apache-2.0
// Removal. Between the listing and the user's confirmation anything may have changed: each item is
// looked up again, must be the same file or process, and must still be unused.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/syscall.h>

#include "base/unique_fd.h"
#include "collector/leftovers/leftover.h"
#include "wire/names.h"

namespace ddpdoctor::leftovers {
namespace {

constexpr int kGrace = 5000;      // milliseconds for SIGTERM
constexpr int kHardGrace = 2000;  // for SIGKILL; only uninterruptible sleep takes longer

/// The current state of the same item; nothing when it has disappeared.
std::optional<Leftover> again(const Leftover& before, const Scope& scope) {
  std::vector<Leftover> now;
  switch (before.kind) {
    case Kind::kSegment:
      now = segments(scope);
      break;
    case Kind::kSpool:
      now = spools(scope);
      break;
    case Kind::kProcess: {
      sources::Candidates candidates(sources::read_process_table());
      now = orphans(candidates, scope);
      break;
    }
  }
  const auto same = std::find_if(now.begin(), now.end(), [&before](const Leftover& one) {
    return one.name == before.name && one.file.id == before.file.id &&
           one.start_ticks == before.start_ticks;
  });
  return same == now.end() ? std::nullopt : std::optional(*same);
}

base::Result<void> refused(const std::string& name, int error) {
  return base::failure(fmt::format("{} could not be removed: {}", name, std::strerror(error)));
}

base::Result<void> remove_spool(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (path.ends_with(wire::kRingSuffix) && ::unlink(path.c_str()) != 0) {
      return refused(path, errno);
    }
  }
  return ::rmdir(folder.c_str()) == 0 ? base::Result<void>{} : refused(folder, errno);
}

bool ended(int process, int milliseconds) {
  pollfd waiting{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, milliseconds) == 1;
}

/// Uses a process descriptor, so that a reused pid cannot be hit.
base::Result<void> end_process(const Leftover& leftover) {
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, leftover.pid, 0)));
  if (!process) {
    return errno == ESRCH ? base::Result<void>{} : refused(leftover.name, errno);
  }
  const auto row = sources::read_process(leftover.pid);
  if (!row || row->start_ticks != leftover.start_ticks) {
    return {};  // it has ended, and another process has its pid
  }
  const auto send = [&process](int signal) {
    return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
  };
  if (send(SIGTERM) != 0 && errno != ESRCH) {
    return refused(leftover.name, errno);
  }
  send(SIGCONT);  // a stopped process cannot end
  if (ended(process.get(), kGrace)) {
    return {};
  }
  send(SIGKILL);
  if (ended(process.get(), kHardGrace)) {
    return {};
  }
  return base::failure(
      fmt::format("{} does not end, not even by SIGKILL: it is in uninterruptible sleep",
                  leftover.name),
      "see what it waits for: ddpdoctor attach " + std::to_string(leftover.pid));
}

}  // namespace

base::Result<void> remove(const Leftover& leftover, const Scope& scope) {
  const auto now = again(leftover, scope);
  if (!now) {
    return {};  // it has exited, which was the aim
  }
  if (now->state != State::kFree) {
    return base::failure(fmt::format("{} was not removed: {}", leftover.name, now->why));
  }
  switch (leftover.kind) {
    case Kind::kSegment:
      return ::unlink(leftover.name.c_str()) == 0 || errno == ENOENT
                 ? base::Result<void>{}
                 : refused(leftover.name, errno);
    case Kind::kSpool:
      return remove_spool(leftover.name);
    case Kind::kProcess:
      return end_process(leftover);
  }
  return {};
}

}  // namespace ddpdoctor::leftovers
