// SPDX-License-Identifier: Apache-2.0
// What NCCL's network transports and the kernel's drivers report of links, ports and switches →
// facts "fabric-event". Which of them is a cause, detectors decide: a peer that has ended looks
// like a broken link, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "node7:984:1357 [4]": what NCCL puts before its lines.
struct NcclTag {
  std::string_view host;
  pid_t pid = 0;
  std::optional<std::int64_t> gpu;
};

/// Absent where the line is none of NCCL's.
std::optional<NcclTag> nccl_tag(std::string_view line);

/// A process of one machine.
using HostPid = std::pair<std::string, pid_t>;

/// Ranks as "comm 0x… rank 3 nranks 16" of NCCL_DEBUG=INFO names them: those of each process's
/// largest communicator.
std::map<HostPid, model::Rank> ranks_of_nccl(std::string_view log);

/// The kernel's message in a line of dmesg, journald or /var/log/messages; empty for other lines.
struct KernelLine {
  std::string_view host;  // empty where the line names none
  std::string_view text;
};
KernelLine kernel_line(std::string_view line);

/// Whether a line is one of the kernel's that this program reads: a GPU, a NIC, a switch, a kill.
bool is_kernel_line(std::string_view line);

void read_fabric_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
