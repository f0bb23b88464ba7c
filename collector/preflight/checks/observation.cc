// SPDX-License-Identifier: Apache-2.0
// Whether `ddpdoctor attach` will be allowed to read the job: Yama, capability, seccomp, container.
// The job itself does not need it, so no result here is an error.
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"
#include "collector/sources/processes/access.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight::observation {
namespace {

constexpr unsigned kPtraceCapability = 19;  // CAP_SYS_PTRACE, linux/capability.h
constexpr int kAdminOnly = 2;
constexpr int kNobody = 3;
constexpr std::string_view kInContainer =
    "start the container with --cap-add=SYS_PTRACE (Kubernetes: capabilities.add: [SYS_PTRACE])";

bool has_capability(const Setting& setting) {
  const std::string status = setting.file("/proc/self/status").value_or("");
  const auto set =
      sources::number<std::uint64_t>(sources::status_field(status, "CapEff").value_or(""), 16);
  return ((set.value_or(0) >> kPtraceCapability) & 1U) != 0;
}

Remark judge(int yama, bool capability, bool container) {
  const std::string why =
      fmt::format("kernel.yama.ptrace_scope is {}, CAP_SYS_PTRACE is {}{}", yama,
                  capability ? "there" : "missing", container ? ", in a container" : "");
  if (yama >= kNobody) {
    return {.level = Level::kWarning,
            .what = why + ": no process may inspect another one; ddpdoctor run still records",
            .fix = "sysctl kernel.yama.ptrace_scope=1 needs a reboot first; use ddpdoctor run"};
  }
  if (capability || yama == 0) {
    return {.level = Level::kOk,
            .what = "attach can inspect processes of this user: " + why,
            .fix = {}};
  }
  return {
      .level = Level::kWarning,
      .what = why + ": ddpdoctor attach will be refused",
      .fix = container ? std::string(kInContainer)
             : yama >= kAdminOnly
                 ? "run ddpdoctor attach with sudo"
                 : "run ddpdoctor attach with sudo, or: sudo sysctl kernel.yama.ptrace_scope=0"};
}

Remarks look(const Setting& setting) {
  const std::string yama = setting.file("/proc/sys/kernel/yama/ptrace_scope").value_or("0");
  const sources::AccessFacts facts = sources::access_facts(::getpid());
  Remarks remarks{judge(sources::number<int>(base::trim(yama)).value_or(0), has_capability(setting),
                        facts.in_container)};
  if (facts.memory_read_refused) {
    remarks.push_back({.level = Level::kWarning,
                       .what = "process_vm_readv is blocked by a seccomp filter",
                       .fix = facts.in_container
                                  ? "docker run --security-opt seccomp=unconfined, or " +
                                        std::string(kInContainer)
                                  : "run outside the sandbox"});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{.name = "observation", .title = "Permission to inspect the job", .look = look};

}  // namespace ddpdoctor::preflight::observation
