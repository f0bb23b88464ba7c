// SPDX-License-Identifier: Apache-2.0
// Why a process cannot be read, and what would help: Yama, capability, user, container, not
// dumpable, traced, zombie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/result.h"

namespace ddpdoctor::sources {

/// The facts that decide whether the kernel allows ptrace and similar calls (ptrace(2), "Ptrace
/// access mode checking").
struct AccessFacts {
  pid_t pid = 0;
  bool exists = false;
  std::optional<pid_t> thread_of;  // the number is a thread, not a process
  std::optional<pid_t> outer_pid;  // the number is a pid inside a container; this is its pid here
  char state = '?';
  pid_t parent = 0;
  std::string comm;
  bool kernel_thread = false;
  unsigned uid = 0;       // real uid of the target
  unsigned our_uid = 0;   // our file-system uid
  bool readable = false;  // /proc/PID/mem could be opened
  bool dumpable = true;
  bool we_have_ptrace = false;     // CAP_SYS_PTRACE in our effective set
  bool more_capabilities = false;  // the target has capabilities that we lack
  bool other_user_namespace = false;
  bool in_container = false;         // we are in one
  std::optional<int> yama_scope;     // /proc/sys/kernel/yama/ptrace_scope
  bool our_seccomp = false;          // a seccomp filter applies to us
  bool memory_read_refused = false;  // process_vm_readv fails although /proc/PID/mem opens
  pid_t tracer = 0;
  std::string tracer_comm;
};

/// Collects the facts without changing or stopping anything.
AccessFacts access_facts(pid_t pid);

/// One sentence with the obstacle and the remedy. An empty `what` means that there is none.
base::Error explain(const AccessFacts& facts);

/// access_facts and explain combined.
base::Error why_unreadable(pid_t pid);

/// True if memory, stacks and environment of the process are readable.
bool may_read(pid_t pid);

/// The process of a thread id; nothing if `tid` is a process itself or does not exist.
std::optional<pid_t> process_of_thread(pid_t tid);

}  // namespace ddpdoctor::sources
