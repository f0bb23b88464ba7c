// SPDX-License-Identifier: Apache-2.0
// Messages of Open MPI, UCX and MPICH about connections that they could not make.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding for all failed connections; empty if the program's output continued after them.
Findings unreachable_in_mpi(const graph::Examination& examination, std::string_view kind);

/// The interface with this address, from the output of `ifconfig` or `ip address` in a log; empty
/// if none is listed.
std::string interface_with(const model::JobModel& job, std::string_view address);

}  // namespace ddpdoctor::detectors
