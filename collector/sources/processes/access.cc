// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/access.h"

#include <array>
#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::sources {

namespace {

constexpr unsigned kPtraceCapability = 19;  // CAP_SYS_PTRACE, linux/capability.h

std::uint64_t capabilities(std::string_view status, std::string_view set) {
  return number<std::uint64_t>(status_field(status, set).value_or(""), 16).value_or(0);
}

unsigned first_number(std::string_view status, std::string_view name, std::size_t column) {
  const auto values = words(status_field(status, name).value_or(""));
  return column < values.size() ? number<unsigned>(values[column]).value_or(0) : 0;
}

/// A process whose innermost pid is `pid` and whose pid here is different.
std::optional<pid_t> outer_pid_of(pid_t pid) {
  for (const int candidate : numbered_entries("/proc")) {
    const auto status = read_file(proc_path(candidate, "status"));
    const auto pids = words(status ? status_field(*status, "NSpid").value_or("") : "");
    if (pids.size() > 1 && number<pid_t>(pids.back()) == pid) {
      return candidate;
    }
  }
  return std::nullopt;
}

bool is_in_container() {
  struct stat found{};
  if (::stat("/.dockerenv", &found) == 0 || ::stat("/run/.containerenv", &found) == 0) {
    return true;
  }
  const auto groups = read_file("/proc/1/cgroup").value_or("");
  for (const char* mark : {"docker", "kubepods", "containerd", "libpod", "lxc"}) {
    if (groups.find(mark) != std::string::npos) {
      return true;
    }
  }
  return false;
}

/// Reads one byte of the target's own argv: process_vm_readv may be refused although /proc/PID/mem
/// can be opened.
bool memory_read_refused(const ProcessRow& row) {
  if (row.arguments_at == 0) {
    return false;
  }
  std::byte byte{};
  iovec local{.iov_base = &byte, .iov_len = 1};
  // The kernel expects the address in another process as a pointer.
  iovec remote{.iov_base = reinterpret_cast<void*>(row.arguments_at), .iov_len = 1};  // NOLINT
  return ::process_vm_readv(row.pid, &local, 1, &remote, 1, 0) < 0;
}

/// Files in /proc/PID belong to root if the process is not dumpable (the folder itself does not).
unsigned owner_of(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_uid : 0;
}

std::string user_name(unsigned uid) {
  std::array<char, 1024> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return fmt::format("{} (uid {})", found->pw_name, uid);
  }
  return fmt::format("uid {}", uid);
}

std::string titled(const AccessFacts& facts) {
  return facts.comm.empty()
             ? fmt::format("process {}", facts.pid)
             : fmt::format("process {} ({})", facts.pid, base::printable(facts.comm));
}

constexpr std::string_view kContainerRemedy =
    "start the container with --cap-add=SYS_PTRACE (Kubernetes: securityContext.capabilities.add: "
    "[SYS_PTRACE]), or attach from the host as root";

base::Error explain_absent(const AccessFacts& facts) {
  if (facts.thread_of) {
    return {.what = fmt::format("{} is a thread of process {}, not a process", facts.pid,
                                *facts.thread_of),
            .hint = fmt::format("use {}", *facts.thread_of)};
  }
  if (facts.outer_pid) {
    return {
        .what =
            fmt::format("there is no process {} here; inside a container there is one", facts.pid),
        .hint = fmt::format("from this side of the container it is process {}", *facts.outer_pid)};
  }
  return {.what = fmt::format("there is no process {}", facts.pid),
          .hint =
              "find the job with: pgrep -af torchrun; a pid seen inside a container has another "
              "number outside"};
}

base::Error explain_yama(const AccessFacts& facts) {
  const std::string what =
      fmt::format("{} is not readable: Yama forbids it (kernel.yama.ptrace_scope = {})",
                  titled(facts), *facts.yama_scope);
  constexpr int kAdminOnly = 2;
  constexpr int kNobody = 3;
  if (*facts.yama_scope >= kNobody) {
    return {.what = what,
            .hint = "this setting forbids it to every user, root included, until the next boot"};
  }
  if (*facts.yama_scope == kAdminOnly) {
    return {.what = what, .hint = "run ddpdoctor with sudo (it needs CAP_SYS_PTRACE)"};
  }
  return {.what = what,
          .hint =
              "run ddpdoctor with sudo, or allow it until the next boot: sudo sysctl "
              "kernel.yama.ptrace_scope=0"};
}

/// The target exists but access to it is refused.
base::Error explain_refusal(const AccessFacts& facts) {
  const std::string start = fmt::format("{} is not readable: ", titled(facts));
  constexpr int kYamaNobody = 3;
  if (facts.we_have_ptrace && facts.yama_scope == kYamaNobody) {
    return explain_yama(facts);
  }
  if (facts.we_have_ptrace && facts.other_user_namespace) {
    return {.what = start + "it is in a user namespace outside that of ddpdoctor",
            .hint = "attach from the host as root, outside the container"};
  }
  if (facts.we_have_ptrace) {
    return {.what = start +
                    "the kernel refuses although ddpdoctor has CAP_SYS_PTRACE: a security module "
                    "(SELinux, AppArmor) or lockdown forbids it",
            .hint = "search for a denial in: dmesg, ausearch -m avc"};
  }
  if (facts.our_uid == 0) {
    return {.what = start + "ddpdoctor runs as root without CAP_SYS_PTRACE" +
                    (facts.in_container ? " (a container without that capability)" : ""),
            .hint = std::string(kContainerRemedy)};
  }
  if (facts.uid != facts.our_uid) {
    return {.what = start + fmt::format("it belongs to {}, ddpdoctor runs as {}",
                                        user_name(facts.uid), user_name(facts.our_uid)),
            .hint = "run ddpdoctor as that user or with sudo"};
  }
  if (!facts.dumpable) {
    return {
        .what = start +
                "it made itself unreadable (PR_SET_DUMPABLE, or a set-uid or unreadable program)",
        .hint = "run ddpdoctor with sudo (it needs CAP_SYS_PTRACE)"};
  }
  if (facts.other_user_namespace) {
    return {.what = start + "it is in another user namespace (rootless container)",
            .hint = "run ddpdoctor inside that container, or as root outside"};
  }
  if (facts.more_capabilities) {
    return {.what = start + "it has capabilities that ddpdoctor lacks",
            .hint = "run ddpdoctor with sudo (it needs CAP_SYS_PTRACE)"};
  }
  if (facts.yama_scope.value_or(0) > 0) {
    return explain_yama(facts);
  }
  return {.what = start + "permission denied",
          .hint = facts.in_container ? std::string(kContainerRemedy)
                                     : "run ddpdoctor with sudo (it needs CAP_SYS_PTRACE)"};
}

}  // namespace

std::optional<pid_t> process_of_thread(pid_t tid) {
  const auto status = read_file(proc_path(tid, "status"));
  const auto leader =
      status ? number<pid_t>(status_field(*status, "Tgid").value_or("")) : std::nullopt;
  return leader && *leader != tid ? leader : std::nullopt;
}

AccessFacts access_facts(pid_t pid) {
  AccessFacts facts;
  facts.pid = pid;
  const auto row = pid > 0 ? read_process(pid) : std::nullopt;
  if (!row) {
    facts.outer_pid = pid > 0 ? outer_pid_of(pid) : std::nullopt;
    return facts;
  }
  facts.thread_of = process_of_thread(pid);
  facts.exists = !facts.thread_of;
  facts.state = row->state;
  facts.parent = row->ppid;
  facts.comm = row->comm;
  facts.kernel_thread = row->kernel_thread;
  const std::string status = read_file(proc_path(pid, "status")).value_or("");
  const std::string ours = read_file("/proc/self/status").value_or("");
  constexpr std::size_t kFileSystemUid = 3;
  facts.uid = first_number(status, "Uid", 0);
  facts.our_uid = first_number(ours, "Uid", kFileSystemUid);
  facts.dumpable = owner_of(proc_path(pid, "status")) == first_number(status, "Uid", 1);
  const std::uint64_t our_capabilities = capabilities(ours, "CapEff");
  facts.we_have_ptrace = (our_capabilities >> kPtraceCapability & 1U) != 0;
  facts.more_capabilities = (capabilities(status, "CapPrm") & ~capabilities(ours, "CapPrm")) != 0;
  facts.our_seccomp = first_number(ours, "Seccomp", 0) != 0;
  const auto namespace_of_target = read_link(proc_path(pid, "ns/user"));
  facts.other_user_namespace =
      namespace_of_target && namespace_of_target != read_link("/proc/self/ns/user");
  facts.in_container = is_in_container();
  if (const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope")) {
    facts.yama_scope = number<int>(base::trim(*scope));
  }
  facts.readable = static_cast<bool>(
      base::UniqueFd(::open(proc_path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC)));
  facts.memory_read_refused = facts.readable && memory_read_refused(*row);
  facts.tracer = static_cast<pid_t>(first_number(status, "TracerPid", 0));
  if (facts.tracer != 0) {
    facts.tracer_comm =
        std::string(base::trim(read_file(proc_path(facts.tracer, "comm")).value_or("")));
  }
  return facts;
}

base::Error explain(const AccessFacts& facts) {
  if (!facts.exists) {
    return explain_absent(facts);
  }
  if (facts.state == 'Z' || facts.state == 'X') {
    return {.what = fmt::format(
                "{} has ended; only its entry is left (zombie) until its parent {} collects it",
                titled(facts), facts.parent),
            .hint = fmt::format("attach to its parent {} or to another process of the job",
                                facts.parent)};
  }
  if (facts.kernel_thread) {
    return {.what = fmt::format("{} is a thread of the kernel: it has no memory of its own",
                                titled(facts)),
            .hint = "name a process of the job"};
  }
  if (!facts.readable) {
    return explain_refusal(facts);
  }
  if (facts.memory_read_refused) {
    return {
        .what = fmt::format("{}: the system call process_vm_readv is blocked{}", titled(facts),
                            facts.our_seccomp ? " by a seccomp filter" : ""),
        .hint =
            "start the container with --security-opt seccomp=unconfined, or attach from the host "
            "as root"};
  }
  if (facts.tracer != 0) {
    return {.what = fmt::format("{} is traced by process {} ({}): its running threads cannot be "
                                "stopped, sleeping ones can be read",
                                titled(facts), facts.tracer, base::printable(facts.tracer_comm)),
            .hint = fmt::format("end or detach process {} first", facts.tracer)};
  }
  return {};
}

base::Error why_unreadable(pid_t pid) {
  return explain(access_facts(pid));
}

bool may_read(pid_t pid) {
  const AccessFacts facts = access_facts(pid);
  return facts.exists && facts.readable && !facts.memory_read_refused && facts.state != 'Z';
}

}  // namespace ddpdoctor::sources
