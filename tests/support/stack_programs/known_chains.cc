// SPDX-License-Identifier: Apache-2.0
// Threads that know their own stacks. Each calls a chain of functions that are difficult for
// unwinders (alloca, aligned locals, std::function, virtual calls) and ends in a blocking call. It
// prints its chain to stdout: "TID innermost … outermost". "threads N" says how many such lines
// follow. Ends when stdin is closed. Names begin with "chain_", so that a test can tell them from
// the libraries' frames.
#include <alloca.h>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace {

constexpr int kThreads = 77;
volatile int sink = 0;
pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

thread_local std::vector<const char*> chain;  // outermost first

/// Prints the chain; called last before blocking.
void say() {
  pthread_mutex_lock(&printing);
  std::printf("%ld", syscall(SYS_gettid));
  for (auto name = chain.rbegin(); name != chain.rend(); ++name) {
    std::printf(" %s", *name);
  }
  std::printf("\n");
  std::fflush(stdout);
  pthread_mutex_unlock(&printing);
}

}  // namespace

// Plain names, never inlined and never left by a tail call: there is work after each call.
#define CHAIN extern "C" __attribute__((noinline, noclone))

CHAIN void chain_dispatch(unsigned seed, int depth, int leaf);

CHAIN void chain_sleep() {
  chain.push_back(__func__);
  say();
  for (;;) {
    sleep(1000);
  }
}

CHAIN void chain_poll() {
  chain.push_back(__func__);
  say();
  for (;;) {
    poll(nullptr, 0, -1);
  }
}

CHAIN void chain_read() {
  chain.push_back(__func__);
  std::array<int, 2> ends{};
  sink = sink + pipe(ends.data());
  say();
  for (;;) {
    char byte = 0;
    sink = sink + static_cast<int>(read(ends[0], &byte, 1));
  }
}

CHAIN void chain_mutex() {
  chain.push_back(__func__);
  say();
  for (;;) {
    pthread_mutex_lock(&held);
  }
}

CHAIN void chain_semaphore() {
  chain.push_back(__func__);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  say();
  for (;;) {
    sem_wait(&semaphore);
  }
}

CHAIN void chain_condition() {
  chain.push_back(__func__);
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  say();
  condition.wait(lock, [] { return false; });
}

CHAIN void chain_epoll() {
  chain.push_back(__func__);
  const int poller = epoll_create1(0);
  say();
  for (;;) {
    epoll_event event{};
    epoll_wait(poller, &event, 1, -1);
  }
}

CHAIN void chain_suspend() {
  chain.push_back(__func__);
  sigset_t none;
  sigemptyset(&none);
  say();
  for (;;) {
    sigsuspend(&none);
  }
}

CHAIN void chain_receive() {
  chain.push_back(__func__);
  std::array<int, 2> ends{};
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
  say();
  for (;;) {
    char byte = 0;
    recv(ends[0], &byte, 1, 0);
  }
}

CHAIN void chain_raw_syscall() {
  chain.push_back(__func__);
  say();
  for (;;) {
    syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
  }
}

CHAIN void chain_handler(int /*signal*/) {
  chain.push_back(__func__);
  say();
  for (;;) {
    pause();
  }
}

CHAIN void chain_signal() {
  chain.push_back(__func__);
  pthread_kill(pthread_self(), SIGUSR1);
  sink = sink + 1;
}

CHAIN void chain_alloca(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  auto* const room = static_cast<volatile char*>(alloca(64 + (seed % 7) * 48));
  room[0] = 1;
  chain_dispatch(seed * 1103515245U + 12345U, depth - 1, leaf);
  sink = sink + room[0];
}

CHAIN void chain_aligned(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  alignas(64) volatile char room[128];
  room[0] = static_cast<char>(seed);
  chain_dispatch(seed * 1103515245U + 12345U, depth - 1, leaf);
  sink = sink + room[0];
}

CHAIN void chain_plain(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  const int first = sink;
  const int second = static_cast<int>(seed) ^ depth;
  const int third = leaf * 3;
  chain_dispatch(seed * 1103515245U + 12345U, depth - 1, leaf);
  sink = sink + first + second + third;
}

CHAIN void chain_function(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  const std::function<void()> call = [=] {
    chain_dispatch(seed * 1103515245U + 12345U, depth - 1, leaf);
    sink = sink + 1;
  };
  call();
  sink = sink + 1;
}

struct Virtual {
  virtual ~Virtual() = default;
  virtual void go(unsigned seed, int depth, int leaf) = 0;
};

struct Concrete : Virtual {
  void go(unsigned seed, int depth, int leaf) override {
    chain_dispatch(seed + 777U, depth - 1, leaf);
    sink = sink + 1;
  }
};

Virtual* volatile object = nullptr;

CHAIN void chain_virtual(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  object->go(seed * 69069U, depth, leaf);
  sink = sink + 1;
}

using Leaf = void (*)();
const Leaf kLeaves[] = {chain_sleep,     chain_poll,        chain_read,  chain_mutex,
                        chain_semaphore, chain_condition,   chain_epoll, chain_suspend,
                        chain_receive,   chain_raw_syscall, chain_signal};
using Step = void (*)(unsigned, int, int);

CHAIN void chain_dispatch(unsigned seed, int depth, int leaf) {
  chain.push_back(__func__);
  if (depth <= 0) {
    kLeaves[leaf]();
    sink = sink + 1;
    return;
  }
  switch ((seed >> 16U) % 5) {
    case 0:
      chain_alloca(seed, depth, leaf);
      break;
    case 1:
      chain_aligned(seed, depth, leaf);
      break;
    case 2:
      chain_plain(seed, depth, leaf);
      break;
    case 3:
      chain_function(seed, depth, leaf);
      break;
    default:
      chain_virtual(seed, depth, leaf);
  }
  sink = sink + 1;
}

CHAIN void* chain_thread(void* number) {
  chain.push_back(__func__);
  const auto index = static_cast<unsigned>(reinterpret_cast<std::size_t>(number));
  chain_dispatch(index * 2654435761U, static_cast<int>(3 + index % 9),
                 static_cast<int>(index % 11));
  sink = sink + 1;
  return nullptr;
}

int main() {
  static Concrete concrete;
  object = &concrete;
  signal(SIGUSR1, chain_handler);
  pthread_mutex_lock(&held);
  for (std::size_t i = 0; i < kThreads; ++i) {
    pthread_t thread{};
    pthread_create(&thread, nullptr, chain_thread, reinterpret_cast<void*>(i));
  }
  pthread_mutex_lock(&printing);
  std::printf("threads %d\n", kThreads);
  std::fflush(stdout);
  pthread_mutex_unlock(&printing);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  _exit(0);
}
