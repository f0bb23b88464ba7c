// SPDX-License-Identifier: Apache-2.0
// What NCCL's log says of the processes of a job: their addresses, and calls of their own that
// failed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// Ranks in which a CUDA call of NCCL failed, one finding for each error: after the failure of one,
/// the others only lose their connections. If several failed in the same way, no rank is to blame.
/// None if the output continued after NCCL's lines.
Findings failed_in_nccl(const model::JobModel& job, std::string_view kind);

/// CUDA refused the multicast memory of the NVSwitches: the state of the node, not of a rank.
std::optional<Finding> failed_in_nvls(const model::JobModel& job, std::string_view kind);

/// An address that cannot be reached from other hosts.
struct BadAddress {
  std::string words;  // "NCCL uses lo (127.0.0.1) on hosts a and b"
  std::string fix;
  std::vector<Evidence> evidence;
};

/// Hosts whose first interface is the loopback, or that have the same address: in a job of several
/// hosts, the others cannot reach them. Nothing if the output continued after NCCL's lines.
std::optional<BadAddress> bad_address(const model::JobModel& job);

/// Every GPU of NCCL's log destroyed its communicators, and no line reports trouble.
bool ended_well_in_nccl(const model::JobModel& job);

/// Each log is of nccl-tests (or rccl-tests), ends with its summary without a wrong value, and has
/// no line that reports trouble.
bool nccl_tests_passed(const model::JobModel& job);

/// The exception has one of NCCL's general errors ("unhandled system error"), and a warning of NCCL
/// in a log tells the cause: a detector of its own reports it.
bool nccl_explains(const model::JobModel& job, std::string_view exception);

}  // namespace ddpdoctor::detectors
