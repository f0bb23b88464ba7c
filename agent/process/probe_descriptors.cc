// SPDX-License-Identifier: Apache-2.0
// Exhaustion of descriptors and space: every call that creates a descriptor is passed on and
// examined only if it failed.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "agent/inside.h"
#include "agent/process_state.h"
#include "agent/real.h"
#include "agent/record/decimal.h"
#include "agent/record/failures.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

using OpenFunction = int (*)(const char*, int, ...);
using OpenAtFunction = int (*)(int, const char*, int, ...);

constinit Real<OpenFunction> real_open{"open"};
constinit Real<OpenFunction> real_open64{"open64"};
constinit Real<OpenAtFunction> real_openat{"openat"};
constinit Real<OpenAtFunction> real_openat64{"openat64"};
constinit Real<int (*)(int, int, int)> real_socket{"socket"};
constinit Real<int (*)(int, int, int, int*)> real_socketpair{"socketpair"};
constinit Real<int (*)(int*)> real_pipe{"pipe"};
constinit Real<int (*)(int*, int)> real_pipe2{"pipe2"};
constinit Real<int (*)(int, sockaddr*, socklen_t*)> real_accept{"accept"};
constinit Real<int (*)(int, sockaddr*, socklen_t*, int)> real_accept4{"accept4"};
constinit Real<int (*)(int)> real_dup{"dup"};
constinit Real<int (*)(unsigned, int)> real_eventfd{"eventfd"};
constinit Real<int (*)(int)> real_epoll_create1{"epoll_create1"};
constinit Real<int (*)(const char*, unsigned)> real_memfd_create{"memfd_create"};

// A program that retries continuously must not displace all other events from the ring.
constexpr int kToldAtMost = 16;
constinit std::atomic<int> told{0};

std::uint32_t path_of(wire::Ring& ring, int descriptor) {
  char link[32] = "/proc/self/fd/";
  *put_decimal(link + strlen(link), descriptor) = 0;
  char path[512];
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 ? intern(ring, path, static_cast<std::size_t>(length)) : 0;
}

/// `mode` is present only if a file may be created.
mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

int checked(int result, const char* call) {
  if (result < 0) [[unlikely]] {
    call_failed(call);
  }
  return result;
}

}  // namespace

__attribute__((cold, noinline)) void call_failed(const char* call, int descriptor) {
  const int error = errno;
  if (error != EMFILE && error != ENFILE && error != ENOSPC) {
    return;
  }
  const Inside inside;
  // a ring needs a descriptor, too: without one, the failure is recorded once there is a ring
  const bool can_make = error == ENOSPC && inside;
  wire::Ring* const ring_now = can_make ? ring_or_make() : ring();
  if (inside && ring_now == nullptr && error != ENOSPC) {
    process_state().no_descriptor_for = call;
  }
  if (!inside || ring_now == nullptr ||
      ring_now->header.pid != static_cast<std::uint32_t>(getpid()) ||
      told.fetch_add(1, std::memory_order_relaxed) >= kToldAtMost) {
    return;
  }
  record(*ring_now,
         {.kind = error == ENOSPC ? wire::EventKind::kNoSpace : wire::EventKind::kDescriptorsFull,
          .site = call_site(*ring_now),
          .peer = error,
          .text = descriptor >= 0 ? path_of(*ring_now, descriptor)
                                  : intern(*ring_now, call, strlen(call))});
}

/// Most of these may first be called in a signal handler, where dlsym must not be used.
void find_functions_of_descriptors() {
  real_open.get();
  real_open64.get();
  real_openat.get();
  real_openat64.get();
  real_socket.get();
  real_socketpair.get();
  real_pipe.get();
  real_pipe2.get();
  real_accept.get();
  real_accept4.get();
  real_dup.get();
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

// NOLINTBEGIN(cert-dcl50-cpp): libc declares these with an ellipsis
EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return checked(real_open.get()(path, flags, mode), "open");
}

EXPORT int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return checked(real_open64.get()(path, flags, mode), "open");
}

EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return checked(real_openat.get()(folder, path, flags, mode), "openat");
}

EXPORT int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return checked(real_openat64.get()(folder, path, flags, mode), "openat");
}
// NOLINTEND(cert-dcl50-cpp)

EXPORT int socket(int domain, int type, int protocol) noexcept {
  return checked(real_socket.get()(domain, type, protocol), "socket");
}

EXPORT int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  return checked(real_socketpair.get()(domain, type, protocol, ends), "socketpair");
}

EXPORT int pipe(int ends[2]) noexcept {
  return checked(real_pipe.get()(ends), "pipe");
}

EXPORT int pipe2(int ends[2], int flags) noexcept {
  return checked(real_pipe2.get()(ends, flags), "pipe");
}

EXPORT int accept(int descriptor, sockaddr* address, socklen_t* length) {
  return checked(real_accept.get()(descriptor, address, length), "accept");
}

EXPORT int accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  return checked(real_accept4.get()(descriptor, address, length, flags), "accept");
}

EXPORT int dup(int descriptor) noexcept {
  return checked(real_dup.get()(descriptor), "dup");
}

EXPORT int eventfd(unsigned value, int flags) noexcept {
  return checked(real_eventfd.get()(value, flags), "eventfd");
}

EXPORT int epoll_create1(int flags) noexcept {
  return checked(real_epoll_create1.get()(flags), "epoll_create");
}

EXPORT int memfd_create(const char* name, unsigned flags) noexcept {
  const auto real = real_memfd_create.get();  // null: glibc before 2.27
  return checked(real != nullptr ? real(name, flags)
                                 : static_cast<int>(syscall(SYS_memfd_create, name, flags)),
                 "memfd_create");
}
}
