// SPDX-License-Identifier: Apache-2.0
// Reports of NCCL's network transports and of kernel drivers about links, ports and switches, as
// facts "fabric-event". Detectors decide which of them is a cause, because an exited peer also
// looks like a broken link.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "node7:984:1357 [4]": NCCL's prefix of its lines.
struct NcclTag {
  std::string_view host;
  pid_t pid = 0;
  std::optional<std::int64_t> gpu;
};

/// Absent if the line is not NCCL's.
std::optional<NcclTag> nccl_tag(std::string_view line);

/// NCCL's text in an INFO line; empty for other lines.
std::string_view nccl_info(std::string_view line);

/// A process of one machine.
using HostPid = std::pair<std::string, pid_t>;

/// The kernel's message in a line of dmesg, journald or /var/log/messages; empty for other lines.
struct KernelLine {
  std::string_view host;  // empty if the line names none
  std::string_view text;
};
KernelLine kernel_line(std::string_view line);

/// True for a kernel line that this program reads: about a GPU, a NIC, a switch or a killed
/// process.
bool is_kernel_line(std::string_view line);

void read_fabric_text(std::string_view log, model::JobModel& job);

}  // namespace ddpdoctor::imports
