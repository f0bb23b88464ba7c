// SPDX-License-Identifier: Apache-2.0
// The descriptors that a system call waits for: the first argument of read and write; for poll and
// select, what the arguments point to.
#include <algorithm>
#include <array>
#include <poll.h>
#include <span>

#include <sys/syscall.h>

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

constexpr std::array kReads{SYS_read,     SYS_readv,    SYS_pread64,   SYS_preadv,
                            SYS_recvfrom, SYS_recvmsg,  SYS_accept4,   SYS_recvmmsg,
                            SYS_splice,   SYS_sendfile, SYS_getdents64};
constexpr std::array kWrites{SYS_write,     SYS_writev,    SYS_pwrite64, SYS_pwritev, SYS_sendto,
                             SYS_sendmsg,   SYS_sendmmsg,  SYS_connect,  SYS_fsync,   SYS_fdatasync,
                             SYS_ftruncate, SYS_fallocate, SYS_close,    SYS_ioctl};
#ifdef SYS_poll
constexpr std::array kPolls{SYS_poll, SYS_ppoll};
constexpr std::array kSelects{SYS_select, SYS_pselect6};
#else
constexpr std::array kPolls{SYS_ppoll};
constexpr std::array kSelects{SYS_pselect6};
#endif

std::vector<AwaitedDescriptor> polled(WaitContext& context, const WaitingThread& waiting) {
  const auto& arguments = waiting.thread.syscall->arguments;
  const std::size_t count = std::min<std::uint64_t>(arguments[1], kMostPolled);
  std::vector<pollfd> asked(count);
  auto& memory = context.memory(waiting.process.row.pid);
  if (count == 0 || !memory.read(arguments[0], std::as_writable_bytes(std::span(asked)))) {
    return {};
  }
  std::vector<AwaitedDescriptor> found;
  for (const pollfd& one : asked) {
    const bool writes = (one.events & (POLLIN | POLLPRI)) == 0 && (one.events & POLLOUT) != 0;
    found.push_back({.fd = one.fd, .direction = writes ? Direction::kWrite : Direction::kRead});
  }
  return found;
}

/// Descriptors of one fd_set in the target's memory.
void add_set(WaitContext& context, const WaitingThread& waiting, std::uint64_t address,
             std::size_t count, Direction direction, std::vector<AwaitedDescriptor>& found) {
  constexpr std::size_t kBits = 8;
  std::vector<std::byte> bits((std::min(count, kMostPolled) + kBits - 1) / kBits);
  if (address == 0 || bits.empty() ||
      !context.memory(waiting.process.row.pid).read(address, bits)) {
    return;
  }
  for (std::size_t fd = 0; fd < std::min(count, kMostPolled); ++fd) {
    if ((std::to_integer<unsigned>(bits[fd / kBits]) >> (fd % kBits) & 1U) != 0) {
      found.push_back({.fd = static_cast<int>(fd), .direction = direction});
    }
  }
}

std::vector<AwaitedDescriptor> selected(WaitContext& context, const WaitingThread& waiting) {
  const auto& arguments = waiting.thread.syscall->arguments;
  const auto count = static_cast<std::size_t>(static_cast<std::uint32_t>(arguments[0]));
  std::vector<AwaitedDescriptor> found;
  add_set(context, waiting, arguments[1], count, Direction::kRead, found);
  add_set(context, waiting, arguments[2], count, Direction::kWrite, found);
  return found;
}

}  // namespace

std::vector<AwaitedDescriptor> awaited_descriptors(WaitContext& context,
                                                   const WaitingThread& waiting) {
  if (!waiting.thread.syscall) {
    return {};
  }
  const std::int64_t call = waiting.thread.syscall->number;
  const int fd = static_cast<int>(waiting.thread.syscall->arguments[0]);
  if (is_one_of(call, kReads)) {
    return {{.fd = fd, .direction = Direction::kRead}};
  }
  if (is_one_of(call, kWrites)) {
    return {{.fd = fd, .direction = Direction::kWrite}};
  }
  if (is_one_of(call, kPolls)) {
    return polled(context, waiting);
  }
  return is_one_of(call, kSelects) ? selected(context, waiting) : std::vector<AwaitedDescriptor>();
}

}  // namespace ddpdoctor::sources
