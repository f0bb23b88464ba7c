// SPDX-License-Identifier: Apache-2.0
// The begin and end of processes: fork, exec, exit, reaped children, and the last part of standard
// error.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "agent/inside.h"
#include "agent/mpi/mpi_end.h"
#include "agent/process/rank_end.h"
#include "agent/process_state.h"
#include "agent/real.h"
#include "agent/record/failures.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

constinit Real<pid_t (*)()> real_fork{"fork"};
constinit Real<pid_t (*)(pid_t, int*, int)> real_waitpid{"waitpid"};
constinit Real<pid_t (*)(pid_t, int*, int, rusage*)> real_wait4{"wait4"};
constinit Real<pid_t (*)(int*, int, rusage*)> real_wait3{"wait3"};
constinit Real<pid_t (*)(int*)> real_wait{"wait"};
constinit Real<int (*)(idtype_t, id_t, siginfo_t*, int)> real_waitid{"waitid"};
constinit Real<void (*)(int)> real_immediate_exit{"_exit"};
constinit Real<void (*)(int)> real_immediate_exit_of_c{"_Exit"};
constinit Real<void (*)()> real_abort{"abort"};
constinit Real<ssize_t (*)(int, const void*, size_t)> real_write{"write"};
constinit Real<int (*)(const char*, char* const*, char* const*)> real_execve{"execve"};

/// A child's exit justifies a ring only if a signal ended it, because shells wait for thousands of
/// successful children.
void child_ended(pid_t child, int status) {
  const Inside inside;
  if (!inside || child <= 0) {
    return;
  }
  wire::Ring* const ring_now = WIFSIGNALED(status) ? ring_or_make() : ring();
  if (ring_now != nullptr && (WIFSIGNALED(status) || WIFEXITED(status))) {
    record(*ring_now, {.kind = wire::EventKind::kChildExit, .count = child, .peer = status});
  }
}

void says_how_it_ends(wire::ExitKind kind, int value) {
  const Inside inside;
  const bool leaves = kind == wire::ExitKind::kExit || kind == wire::ExitKind::kImmediateExit;
  wire::Ring* const ring_now = leaves ? ring_at_the_end() : ring();
  // after vfork the child shares our memory: its actions are not ours
  if (ring_now == nullptr || ring_now->header.pid != static_cast<std::uint32_t>(getpid())) {
    return;
  }
  if (leaves && mpi_ends_process(*ring_now, value)) {
    return;
  }
  ring_now->header.exit_kind = static_cast<std::uint32_t>(kind);
  ring_now->header.exit_value = value;
  ring_now->header.exit_time = now();
  // an abort may occur in a signal handler: only the ring may be accessed then
  ring_now->header.exit_site = kind == wire::ExitKind::kAbort ? 0 : call_site(*ring_now);
  record(*ring_now, {.kind = wire::EventKind::kExit,
                     .site = ring_now->header.exit_site,
                     .count = value,
                     .detail = static_cast<std::uint32_t>(kind)});
}

template <std::size_t Size>
bool begins_with(const void* text, std::size_t length, const char (&words)[Size]) {
  return length >= Size - 1 && memcmp(text, words, Size - 1) == 0;
}

void withdraw_exec() {
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (ring_now != nullptr && ring_now->header.pid == static_cast<std::uint32_t>(getpid())) {
    ring_now->header.exit_kind = static_cast<std::uint32_t>(wire::ExitKind::kNone);
  }
}

}  // namespace

void exit_observed(int status, void*) {
  says_how_it_ends(wire::ExitKind::kExit, status);
}

/// These may first be called in a signal handler, where dlsym must not be used.
void find_functions_of_handlers() {
  real_fork.get();
  real_waitpid.get();
  real_immediate_exit.get();
  real_immediate_exit_of_c.get();
  real_abort.get();
  real_write.get();
  real_execve.get();
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;
using ddpdoctor::wire::EventKind;
using ddpdoctor::wire::ExitKind;

extern "C" {

EXPORT pid_t fork() {
  const pid_t child = real_fork.get()();
  if (child > 0) {
    const Inside inside;
    if (ddpdoctor::wire::Ring* const ring_now = ring(); ring_now != nullptr && inside) {
      ++ring_now->header.forks;
      record(*ring_now, {.kind = EventKind::kFork,
                         .site = call_site(*ring_now),
                         .count = child,
                         .peer = process_state().cuda_started
                                     ? static_cast<std::int32_t>(process_state().cuda_contexts)
                                     : -1,
                         .detail = process_state().team_threads});
    }
  }
  return child;
}

EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  int own = 0;
  const pid_t child = real_waitpid.get()(pid, status != nullptr ? status : &own, options);
  child_ended(child, status != nullptr && child > 0 ? *status : own);
  return child;
}

EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) {
  int own = 0;
  const pid_t child = real_wait4.get()(pid, status != nullptr ? status : &own, options, usage);
  child_ended(child, status != nullptr && child > 0 ? *status : own);
  return child;
}

// dash uses this call
EXPORT pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  int own = 0;
  const pid_t child = real_wait3.get()(status != nullptr ? status : &own, options, usage);
  child_ended(child, status != nullptr && child > 0 ? *status : own);
  return child;
}

EXPORT pid_t wait(int* status) {
  int own = 0;
  const pid_t child = real_wait.get()(status != nullptr ? status : &own);
  child_ended(child, status != nullptr && child > 0 ? *status : own);
  return child;
}

EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  const int result = real_waitid.get()(type, id, info, options);
  if (result == 0 && info != nullptr && info->si_pid > 0 &&
      (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED)) {
    child_ended(info->si_pid, info->si_status);
  }
  return result;
}

EXPORT __attribute__((noreturn)) void _exit(int status) {
  says_how_it_ends(ExitKind::kImmediateExit, status);
  real_immediate_exit.get()(status);
  __builtin_unreachable();
}

EXPORT __attribute__((noreturn)) void _Exit(int status) {
  says_how_it_ends(ExitKind::kImmediateExit, status);
  real_immediate_exit_of_c.get()(status);
  __builtin_unreachable();
}

EXPORT __attribute__((noreturn)) void abort() {
  says_how_it_ends(ExitKind::kAbort, interpreter_is_ending() ? -SIGABRT : SIGABRT);
  real_abort.get()();
  __builtin_unreachable();
}

EXPORT int execve(const char* path, char* const* arguments, char* const* environment) {
  if (ring() != nullptr) {
    says_how_it_ends(ExitKind::kExec, 0);
  }
  const int result = real_execve.get()(path, arguments, environment);
  withdraw_exec();  // it failed: the process continues
  return result;
}

EXPORT ssize_t write(int fd, const void* text, size_t length) {
  const ssize_t written = real_write.get()(fd, text, length);
  if (written < 0) [[unlikely]] {
    call_failed("write", fd);
  }
  if (fd == STDERR_FILENO && written > 0) {
    const Inside inside;
    // A traceback justifies a ring: a program that fails before it has any group shows the reason
    // there. So do the messages that MPICH's launcher passes on from a rank that gives up.
    const bool tells = begins_with(text, length, "Traceback (most recent call last)") ||
                       begins_with(text, length, "Abort(");
    ddpdoctor::wire::Ring* const ring_now = tells && inside ? ring_or_make() : ring();
    if (inside && ring_now != nullptr &&
        ring_now->header.pid == static_cast<std::uint32_t>(getpid())) {
      keep_stderr(*ring_now, static_cast<const char*>(text), static_cast<size_t>(written));
    }
  }
  return written;
}
}
