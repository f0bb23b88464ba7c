// SPDX-License-Identifier: Apache-2.0
// look_target SCENE: a process in one of the states that an observer must handle. Prints the pids
// and tids that a test needs. Ends when stdin is closed.
#include <alloca.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace {

long own_tid() {
  return syscall(SYS_gettid);
}

void say(const char* what, long value) {
  std::printf("%s %ld\n", what, value);
  std::fflush(stdout);
}

void wait_for_end() {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  _exit(0);
}

__attribute__((noinline)) void* spin_for_ever(void* /*unused*/) {
  say("spinner", own_tid());
  volatile unsigned long count = 0;
  while (count + 1 != 0) {
    count = count + 1;
  }
  return nullptr;
}

void spin() {
  pthread_t thread{};
  pthread_create(&thread, nullptr, spin_for_ever, nullptr);
}

/// Waits that a ptrace stop would end with EINTR; each prints how it ended and starts again.
void timed_waits() {
  std::thread([] {
    const int poller = epoll_create1(0);
    say("epoll_tid", own_tid());
    for (;;) {
      epoll_event event{};
      const int count = epoll_wait(poller, &event, 1, 700);
      say(count == 0 ? "epoll_wait timeout" : "epoll_wait interrupted", errno);
    }
  }).detach();
  std::thread([] {
    std::array<int, 2> ends{};
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    const timeval limit{.tv_sec = 0, .tv_usec = 700000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    say("recv_tid", own_tid());
    for (;;) {
      char byte = 0;
      recv(ends[0], &byte, 1, 0);
      say(errno == EAGAIN ? "recv timeout" : "recv interrupted", errno);
    }
  }).detach();
}

void mutex_wait() {
  static std::mutex held;
  held.lock();
  say("owner", own_tid());
  std::thread([] {
    say("waiter", own_tid());
    held.lock();
  }).detach();
}

/// A child that has inherited a mutex held by a thread which does not exist in it.
void fork_with_held_lock() {
  static std::mutex held;
  std::thread holder([] {
    held.lock();
    say("owner", own_tid());
    pause();
  });
  holder.detach();
  while (held.try_lock()) {
    held.unlock();
    std::this_thread::yield();
  }
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    held.lock();
    _exit(0);
  }
  say("child", child);
}

void child_that(void (*act)()) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    act();
    _exit(0);
  }
  say("child", child);
}

/// Code without a file and without call-frame information, with a frame pointer: push rbp; mov rbp,
/// rsp; call rdi; pop rbp; ret.
void run_time_code() {
  const std::array<unsigned char, 8> code{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, code.data(), code.size());
  using Trampoline = void (*)(void (*)());
  Trampoline trampoline = nullptr;
  std::memcpy(&trampoline, &page, sizeof(page));
  std::thread([trampoline] {
    say("jit_tid", own_tid());
    trampoline([] {
      for (;;) {
        pause();
      }
    });
  }).detach();
}

#ifdef __x86_64__
/// Its caller's frame is found by rbp only, which the kernel shows of no thread that sleeps.
__attribute__((noinline)) long read_below_alloca(int pipe, std::size_t size) {
  auto* const room = static_cast<char*>(alloca(size));
  long result = SYS_read;
  asm volatile("syscall" : "+a"(result) : "D"(pipe), "S"(room), "d"(size) : "rcx", "r11", "memory");
  return result;
}

void frame_by_rbp() {
  std::thread([] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) == 0) {
      say("reader", own_tid());
      read_below_alloca(ends[0], static_cast<std::size_t>(own_tid() % 64 + 1));
    }
  }).detach();
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string_view scene = argc > 1 ? argv[1] : "";
  if (scene == "spin") {
    spin();
  } else if (scene == "timed-waits") {
    timed_waits();
  } else if (scene == "mutex") {
    mutex_wait();
  } else if (scene == "fork-with-held-lock") {
    fork_with_held_lock();
  } else if (scene == "zombie") {
    child_that([] { _exit(7); });
  } else if (scene == "stopped") {
    child_that([] { raise(SIGSTOP); });
  } else if (scene == "run-time-code") {
    run_time_code();
#ifdef __x86_64__
  } else if (scene == "frame-by-rbp") {
    frame_by_rbp();
#endif
  } else {
    say("pid", getpid());
  }
  wait_for_end();
}
