// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/kernel_waits.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostNamedProcesses = 8;

/// Modules of Linux; the functions of each begin with its name or with `prefix` where it is built
/// into the kernel.
struct KernelModule {
  std::string_view module;
  std::string_view prefix;
  KernelPart part;
  std::string_view what;
};

constexpr std::string_view kNfs = "the network file system NFS";
constexpr std::string_view kLustre = "the file system Lustre";
constexpr std::string_view kNvidia = "NVIDIA's driver";
constexpr std::string_view kAmd = "AMD's driver";
constexpr std::string_view kMellanox = "the driver of the network adapter (mlx5)";
constexpr std::string_view kRdma = "the kernel's RDMA";

constexpr std::array<KernelModule, 36> kModules = {{
    {"nfs", "nfs_", KernelPart::kFiles, kNfs},
    {"nfsv3", "nfs3_", KernelPart::kFiles, kNfs},
    {"nfsv4", "nfs4_", KernelPart::kFiles, kNfs},
    {"sunrpc", "rpc_", KernelPart::kFiles, kNfs},
    {"lockd", "nlmclnt_", KernelPart::kFiles, kNfs},
    {"lustre", "ll_", KernelPart::kFiles, kLustre},
    {"ptlrpc", "ptlrpc_", KernelPart::kFiles, kLustre},
    {"mdc", "mdc_", KernelPart::kFiles, kLustre},
    {"osc", "osc_", KernelPart::kFiles, kLustre},
    {"lov", "lov_", KernelPart::kFiles, kLustre},
    {"obdclass", "cl_sync_", KernelPart::kFiles, kLustre},
    {"ceph", "ceph_", KernelPart::kFiles, "the file system Ceph"},
    {"libceph", "ceph_osdc_", KernelPart::kFiles, "the file system Ceph"},
    {"rbd", "rbd_", KernelPart::kFiles, "a block device of Ceph"},
    {"cifs", "cifs_", KernelPart::kFiles, "the network file system SMB"},
    {"fuse", "fuse_", KernelPart::kFiles, "a file system in user space (FUSE)"},
    {"virtiofs", "virtio_fs_", KernelPart::kFiles, "the host's file system (virtiofs)"},
    {"9p", "v9fs_", KernelPart::kFiles, "the host's file system (9p)"},
    {"9pnet", "p9_client_", KernelPart::kFiles, "the host's file system (9p)"},
    {"mmfs26", "", KernelPart::kFiles, "the file system GPFS"},
    {"mmfslinux", "", KernelPart::kFiles, "the file system GPFS"},
    {"beegfs", "FhgfsOps", KernelPart::kFiles, "the file system BeeGFS"},
    {"wekafsio", "", KernelPart::kFiles, "the file system WekaFS"},
    {"ext4", "ext4_", KernelPart::kFiles, "the file system ext4"},
    {"jbd2", "jbd2_", KernelPart::kFiles, "the file system ext4"},
    {"xfs", "xfs_", KernelPart::kFiles, "the file system XFS"},
    {"btrfs", "btrfs_", KernelPart::kFiles, "the file system Btrfs"},
    {"zfs", "zfs_", KernelPart::kFiles, "the file system ZFS"},
    {"nvidia", "", KernelPart::kGpu, kNvidia},
    {"nvidia_uvm", "", KernelPart::kGpu, kNvidia},
    {"amdgpu", "", KernelPart::kGpu, kAmd},
    {"mlx5_core", "mlx5_cmd_", KernelPart::kFabric, kMellanox},
    {"mlx5_ib", "mlx5_ib_", KernelPart::kFabric, kMellanox},
    {"ib_uverbs", "ib_uverbs_", KernelPart::kFabric, kRdma},
    {"ib_core", "ib_", KernelPart::kFabric, kRdma},
    {"rdma_cm", "rdma_", KernelPart::kFabric, kRdma},
}};

const KernelModule* module_of(std::string_view function, std::string_view module) {
  const auto* const found =
      std::find_if(kModules.begin(), kModules.end(), [&](const KernelModule& one) {
        return module.empty() ? !one.prefix.empty() && function.starts_with(one.prefix)
                              : module == one.module;
      });
  return found == kModules.end() ? nullptr : found;
}

/// The innermost function that belongs to a part, and the outermost one of the same part: what lies
/// above is the system call.
std::optional<KernelWait> wait_in(const model::Fact& fact) {
  const auto functions = fact.list("functions");
  const auto modules = fact.list("modules");
  std::optional<KernelWait> out;
  for (std::size_t i = 0; i < std::min(functions.size(), modules.size()); ++i) {
    const KernelModule* const row = module_of(functions[i], modules[i]);
    if (row == nullptr) {
      continue;
    }
    if (!out) {
      out = KernelWait{.pid = fact.pid.value_or(0),
                       .part = row->part,
                       .what = row->what,
                       .function = functions[i],
                       .caller = {},
                       .module = {},
                       .line = {}};
    }
    if (row->part == out->part) {
      out->caller = functions[i];
      out->module = modules[i];
    }
  }
  return out;
}

/// It waits for another process, which has a lock of the kernel.
bool waits_for_kernel_lock(const model::Fact& fact) {
  constexpr std::array<std::string_view, 6> kLocks = {
      "rwsem_down_", "down_read", "down_write", "__mutex_lock", "mutex_lock", "nfs_start_io_"};
  const auto functions = fact.list("functions");
  return std::any_of(functions.begin(), functions.end(), [&kLocks](const std::string& function) {
    return base::begins_with_any(function, kLocks);
  });
}

/// A thread of the kernel, a server that waits for requests, or one that waits for an event of its
/// device: each sleeps all the time.
bool waits_for_work(const model::Fact& fact) {
  constexpr std::array<std::string_view, 5> kAlways = {"kthread", "fuse_dev_do_read", "svc_recv",
                                                       "_event_read", "_poll"};
  const auto functions = fact.list("functions");
  return std::any_of(functions.begin(), functions.end(), [&kAlways](const std::string& function) {
    const std::string_view name = std::string_view(function).substr(0, function.find('.'));
    return std::any_of(kAlways.begin(), kAlways.end(), [name](std::string_view word) {
      return name.ends_with(word) || name.starts_with("ret_from_fork");
    });
  });
}

bool sleeps_uninterruptibly(const model::JobModel& job, const model::Fact& fact) {
  const model::Process* const process = model::process(job, fact.pid.value_or(0));
  const model::Thread* const main = process == nullptr ? nullptr : model::main_thread(*process);
  return fact.text("state") == "D" ||
         (process != nullptr && (process->state == 'D' || (main != nullptr && main->state == 'D')));
}

std::string_view remedy_for(KernelPart part) {
  switch (part) {
    case KernelPart::kFiles:
      return "Check the server and the mount of that file system (`dmesg`, `df`, `nfsstat -m`), or "
             "use local storage. `kill -9` has no effect until it answers.";
    case KernelPart::kGpu:
      return "Run `dmesg | grep -i -e nvrm -e amdgpu` and `nvidia-smi` on that node. If the "
             "process "
             "cannot be killed, reset the GPU or reboot the node.";
    case KernelPart::kFabric:
      break;
  }
  return "Run `dmesg | grep -i -e mlx -e infiniband` and `ibstat` on that node: the adapter or its "
         "firmware does not answer.";
}

std::string sleeper_name(const KernelWait& wait) {
  return wait.pid == 0 ? std::string("a process") : fmt::format("process {}", wait.pid);
}

/// "processes 7, 8 and 9", "12 processes", "a process".
std::string sleepers(const std::vector<KernelWait>& waits) {
  constexpr std::size_t kMostInSummary = 4;
  std::set<pid_t> pids;
  for (const KernelWait& wait : waits) {
    pids.insert(wait.pid);
  }
  if (pids.size() == 1) {
    return waits.size() == 1 || waits.front().pid != 0 ? sleeper_name(waits.front())
                                                       : fmt::format("{} processes", waits.size());
  }
  if (pids.contains(0) || pids.size() > kMostInSummary) {
    return fmt::format("{} processes", pids.contains(0) ? waits.size() : pids.size());
  }
  return fmt::format("processes {}", pids_said(std::vector<pid_t>(pids.begin(), pids.end())));
}

/// The only process that waits for no lock, while others do.
const KernelWait* lock_owner(const std::vector<KernelWait>& waits) {
  const KernelWait* owner = nullptr;
  for (const KernelWait& wait : waits) {
    if (!wait.for_lock && owner != nullptr) {
      return nullptr;
    }
    owner = wait.for_lock ? owner : &wait;
  }
  return waits.size() > 1 ? owner : nullptr;
}

}  // namespace

std::vector<KernelWait> kernel_waits(const model::JobModel& job) {
  using Thread = std::pair<pid_t, pid_t>;  // process, thread
  std::map<Thread, std::pair<KernelWait, const model::Fact*>> of_thread;
  for (const model::Fact* const fact : model::facts(job, "kernel-stack")) {
    const Thread thread{fact->pid.value_or(0), static_cast<pid_t>(fact->number("tid").value_or(0))};
    auto wait = waits_for_work(*fact) ? std::nullopt : wait_in(*fact);
    if (!wait) {
      of_thread.erase(thread);  // it no longer sleeps there
      continue;
    }
    wait->process = wait->pid == 0 ? nullptr : model::process(job, wait->pid);
    wait->uninterruptible = sleeps_uninterruptibly(job, *fact);
    wait->line = fact->text("text").value_or("");
    wait->for_lock = waits_for_kernel_lock(*fact);
    wait->stays = fact->number("blocked_seconds").has_value();  // it did not run during that time
    const auto before = of_thread.find(thread);
    if (before != of_thread.end() && wait->pid != 0) {
      wait->stays =
          wait->stays || before->second.second->list("functions") == fact->list("functions");
    }
    of_thread.insert_or_assign(thread, std::pair(std::move(*wait), fact));
  }
  std::vector<KernelWait> out;
  for (auto& [thread, wait] : of_thread) {
    out.push_back(std::move(wait.first));
  }
  return out;
}

Findings findings_of_kernel_waits(const graph::Examination& examination, std::string_view kind,
                                  KernelPart part) {
  std::vector<KernelWait> waits = kernel_waits(examination.job);
  std::erase_if(waits, [part](const KernelWait& wait) { return wait.part != part; });
  if (waits.empty()) {
    return {};
  }
  const bool stays =
      std::any_of(waits.begin(), waits.end(), [](const KernelWait& wait) { return wait.stays; });
  Finding finding;
  finding.kind = kind;
  finding.confidence = stays && examination.job.progress != model::Progress::kMoving
                           ? Confidence::kLikely
                           : Confidence::kPossible;
  for (const KernelWait& wait : waits) {
    if (wait.process != nullptr && wait.process->rank) {
      finding.culprits.insert(*wait.process->rank);
    }
    if (finding.evidence.size() < kMostNamedProcesses) {
      finding.evidence.push_back(
          {.rank = wait.process == nullptr ? std::nullopt : wait.process->rank,
           .text = fmt::format("{} sleeps in the kernel{} in {}{}", sleeper_name(wait),
                               wait.uninterruptible ? " (state D)" : "", wait.function,
                               wait.caller == wait.function
                                   ? std::string()
                                   : fmt::format(", called by {}", wait.caller))});
    }
  }
  for (const KernelWait& wait : waits) {
    if (!wait.line.empty() && finding.evidence.size() < kMostNamedProcesses) {
      finding.evidence.push_back({.rank = {}, .text = "kernel: " + wait.line});
    }
  }
  const KernelWait* const owner = lock_owner(waits);
  const KernelWait& first = owner == nullptr ? waits.front() : *owner;
  add_where_accused_stand(examination, finding);
  add_waiting(examination, finding);
  if (finding.locations.empty() && finding.culprits.empty()) {
    finding.locations.push_back(
        {.rank = {},
         .ranks = {},
         .file = {},
         .line = 0,
         .function = first.caller,
         .note = fmt::format("{} is here, in the kernel", sleeper_name(first)),
         .outcomes = {},
         .module = first.module});
  }
  finding.summary = fmt::format("{} {} in the kernel for {} ({}){}", sleepers(waits),
                                waits.size() > 1 ? "wait" : "waits", first.what, first.caller,
                                and_who_waits(finding));
  if (owner != nullptr) {
    finding.evidence.push_back(
        {.rank = {},
         .text = fmt::format("{} waits for no lock of the kernel: it probably has the one for "
                             "which the others wait",
                             sleeper_name(*owner))});
  }
  finding.fix = remedy_for(part);
  if (first.pid != 0) {
    finding.details["pid"] = std::int64_t{first.pid};
  }
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
