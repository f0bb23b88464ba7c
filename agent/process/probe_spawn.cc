// SPDX-License-Identifier: Apache-2.0
// Children created without fork(). vfork and clone are only announced: their trampolines
// (spawn_*.S) jump to libc's functions, because a frame of ours shared with the child could be
// returned through twice.
#include <cstdint>
#include <cstring>
#include <sched.h>
#include <spawn.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

using SpawnFunction = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                              const posix_spawnattr_t*, char* const*, char* const*);

constinit Real<SpawnFunction> real_spawn{"posix_spawn"};
constinit Real<SpawnFunction> real_spawnp{"posix_spawnp"};
constinit Real<void*> real_vfork{"vfork"};
constinit Real<void*> real_clone{"clone"};

void child_made(const char* how, pid_t child) {
  const Inside inside;
  wire::Ring* const ring_now = ring();
  if (inside && ring_now != nullptr) {
    ++ring_now->header.forks;
    record(*ring_now, {.kind = wire::EventKind::kFork,
                       .site = call_site(*ring_now),
                       .count = child,
                       .text = intern(*ring_now, how, strlen(how))});
  }
}

}  // namespace

void find_functions_of_spawn() {
  real_vfork.get();
  real_clone.get();
}

}  // namespace ddpdoctor::agent

using namespace ddpdoctor::agent;

extern "C" {

__attribute__((visibility("hidden"))) void* agent_before_vfork() {
  child_made("vfork", -1);
  return real_vfork.get();
}

__attribute__((visibility("hidden"))) void* agent_before_clone(int flags) {
  if ((flags & CLONE_THREAD) == 0) {
    child_made("clone", -1);
  }
  return real_clone.get();
}

EXPORT int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const* arguments,
                       char* const* environment) {
  pid_t own = -1;
  pid_t* const made = child != nullptr ? child : &own;
  const int error = real_spawn.get()(made, path, actions, attributes, arguments, environment);
  if (error == 0) {
    child_made("posix_spawn", *made);
  }
  return error;
}

EXPORT int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const* arguments,
                        char* const* environment) {
  pid_t own = -1;
  pid_t* const made = child != nullptr ? child : &own;
  const int error = real_spawnp.get()(made, file, actions, attributes, arguments, environment);
  if (error == 0) {
    child_made("posix_spawn", *made);
  }
  return error;
}
}
