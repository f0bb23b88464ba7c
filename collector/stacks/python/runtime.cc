// SPDX-License-Identifier: Apache-2.0
// The lists of _PyRuntime: interpreters, thread states, GIL. They belong to a running process, so
// each walk is bounded.
#include "collector/stacks/python/runtime.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "collector/stacks/python/addresses.h"

namespace ddpdoctor::stacks {

namespace {

constexpr int kMostInterpreters = 256;
constexpr std::size_t kMostThreads = 8192;
constexpr pid_t kLargestTid = 1 << 22;  // PID_MAX_LIMIT of 64-bit Linux

// struct pthread of glibc (nptl/descr.h), unchanged from 2.4 to 2.43.
#if defined(__aarch64__)
constexpr RemoteAddress kPthreadList = 192;  // list of threads: next, previous
constexpr RemoteAddress kPthreadTid = 208;

/// Both neighbours in the list point back to it.
bool is_pthread(RemoteMemory& memory, RemoteAddress thread) {
  const RemoteAddress place = thread + kPthreadList;
  const RemoteAddress next = pointer(memory, place);
  const RemoteAddress previous = pointer(memory, place + sizeof(RemoteAddress));
  return next != 0 && previous != 0 && pointer(memory, next + sizeof(RemoteAddress)) == place &&
         pointer(memory, previous) == place;
}
#else
constexpr RemoteAddress kPthreadSelf = 16;
constexpr RemoteAddress kPthreadTid = 720;

/// The first two pointers contain its own address.
bool is_pthread(RemoteMemory& memory, RemoteAddress thread) {
  return pointer(memory, thread) == thread && pointer(memory, thread + kPthreadSelf) == thread;
}
#endif

bool plausible_tid(pid_t tid) {
  return tid > 0 && tid <= kLargestTid;
}

/// Up to 3.10 a thread state contains only pthread_self().
pid_t tid_of_pthread(RemoteMemory& memory, RemoteAddress thread) {
  if (thread == 0 || !is_pthread(memory, thread)) {
    return 0;
  }
  const auto tid = memory.get<pid_t>(thread + kPthreadTid).value_or(0);
  return plausible_tid(tid) ? tid : 0;
}

PythonThread read_thread(RemoteMemory& memory, const PythonLayout& layout, RemoteAddress address) {
  PythonThread thread;
  thread.state.address = address;
  thread.ident = memory.get<std::uint64_t>(at(address, layout.thread_ident)).value_or(0);
  thread.state.ident = thread.ident;
  if (layout.thread_native_id >= 0) {
    const auto tid = memory.get<std::uint64_t>(at(address, layout.thread_native_id)).value_or(0);
    thread.state.inner_tid =
        tid > 0 && tid <= static_cast<std::uint64_t>(kLargestTid) ? static_cast<pid_t>(tid) : 0;
  } else {
    thread.state.inner_tid = tid_of_pthread(memory, thread.ident);
  }
  return thread;
}

std::vector<RemoteAddress> interpreters(RemoteMemory& memory, const PythonHome& home) {
  std::vector<RemoteAddress> found;
  RemoteAddress next = pointer(memory, at(home.runtime, home.layout.runtime_interpreters));
  while (next != 0 && found.size() < kMostInterpreters &&
         std::ranges::find(found, next) == found.end()) {
    found.push_back(next);
    next = pointer(memory, at(next, home.layout.interpreter_next));
  }
  return found;
}

}  // namespace

std::vector<PythonThread> python_threads(RemoteMemory& memory, const PythonHome& home) {
  std::vector<PythonThread> threads;
  for (const RemoteAddress interpreter : interpreters(memory, home)) {
    RemoteAddress next = pointer(memory, at(interpreter, home.layout.interpreter_threads));
    const RemoteAddress first = next;
    while (next != 0 && threads.size() < kMostThreads) {
      threads.push_back(read_thread(memory, home.layout, next));
      next = pointer(memory, at(next, home.layout.thread_next));
      if (next == first) {
        break;
      }
    }
  }
  return threads;
}

std::optional<pid_t> python_gil_holder(RemoteMemory& memory, const PythonHome& home) {
  const PythonLayout& layout = home.layout;
  std::vector<RemoteAddress> locks;
  if (layout.runtime_gil >= 0) {
    locks.push_back(at(home.runtime, layout.runtime_gil));
  } else {
    for (const RemoteAddress interpreter : interpreters(memory, home)) {
      locks.push_back(pointer(memory, at(interpreter, layout.interpreter_gil)));
    }
  }
  for (const RemoteAddress lock : locks) {
    // last_holder stays set after a release: it is valid only if `locked`. -1 = never created.
    if (lock == 0 || memory.get<std::int32_t>(at(lock, layout.gil_locked)) != 1) {
      continue;
    }
    const RemoteAddress holder = pointer(memory, at(lock, layout.gil_holder));
    if (holder == 0) {
      continue;
    }
    const pid_t tid = read_thread(memory, layout, holder).state.inner_tid;
    if (tid != 0) {
      return tid;
    }
  }
  return std::nullopt;
}

RemoteAddress python_modules(RemoteMemory& memory, const PythonHome& home) {
  const auto all = interpreters(memory, home);
  if (all.empty()) {
    return 0;
  }
  RemoteAddress main = all.back();  // newest first
  for (const RemoteAddress interpreter : all) {
    if (memory.get<std::int64_t>(at(interpreter, home.layout.interpreter_id)) == 0) {
      main = interpreter;
    }
  }
  return pointer(memory, at(main, home.layout.interpreter_modules));
}

}  // namespace ddpdoctor::stacks
