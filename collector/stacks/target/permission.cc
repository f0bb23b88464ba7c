// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/permission.h"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/stacks/target/proc_file.h"
#include "collector/stacks/target/proc_tasks.h"

namespace ddpdoctor::stacks {

namespace {

constexpr unsigned kCapSysPtrace = 19;  // linux/capability.h

bool has_ptrace_capability() {
  const auto status = read_proc_file(AT_FDCWD, "/proc/self/status");
  const auto field = status ? status_field(*status, "CapEff") : std::nullopt;
  std::uint64_t set = 0;
  if (field) {
    std::from_chars(field->data(), field->data() + field->size(), set, 16);
  }
  return ((set >> kCapSysPtrace) & 1U) != 0;
}

/// The effective user of a process: the second number in the line "Uid".
std::string user_of(pid_t pid) {
  const auto status = read_proc_file(AT_FDCWD, fmt::format("/proc/{}/status", pid));
  auto field = status ? status_field(*status, "Uid") : std::nullopt;
  if (!field) {
    return {};
  }
  next_word(*field);
  return std::string(next_word(*field));
}

base::Error denied(pid_t pid) {
  const std::string user = user_of(pid);
  const std::string ours = fmt::format("{}", ::geteuid());
  if (has_ptrace_capability()) {
    return {.what = fmt::format(
                "process {} may not be observed although we have CAP_SYS_PTRACE: it belongs to "
                "another user namespace, or a security module forbids it",
                pid),
            .hint = "run ddpdoctor in the container of the job, or as root of the host"};
  }
  if (user != ours) {
    return {
        .what = fmt::format("process {} belongs to user {}, we are user {}", pid, user, ours),
        .hint = "run ddpdoctor as that user or with sudo (in a container: --cap-add=SYS_PTRACE)"};
  }
  const auto yama = read_proc_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope");
  if (yama && base::trim(*yama) != "0") {
    return {.what = fmt::format("process {} may not be observed: kernel.yama.ptrace_scope is {}",
                                pid, base::trim(*yama)),
            .hint = "run ddpdoctor with sudo, or: sudo sysctl kernel.yama.ptrace_scope=0"};
  }
  return {
      .what = fmt::format("process {} may not be observed: it has capabilities we lack, is not "
                          "dumpable, or a seccomp filter forbids it",
                          pid),
      .hint = "run ddpdoctor with CAP_SYS_PTRACE: sudo, or --cap-add=SYS_PTRACE in a container"};
}

}  // namespace

base::Result<void> may_observe(pid_t pid) {
  // Opening mem checks exactly the right that we need (PTRACE_MODE_ATTACH) and changes nothing.
  const base::UniqueFd memory(
      ::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (memory) {
    return {};
  }
  const int reason = errno;
  if (reason == ENOENT || reason == ESRCH) {
    return base::failure(fmt::format("there is no process {}", pid),
                         "check the pid: the job may have ended");
  }
  if (reason == EACCES || reason == EPERM) {
    return tl::make_unexpected(denied(pid));
  }
  return base::failure(fmt::format("process {} cannot be observed: {}", pid,
                                   std::generic_category().message(reason)));
}

}  // namespace ddpdoctor::stacks
