// SPDX-License-Identifier: Apache-2.0
// Processes that the kernel's out-of-memory killer ended, from its lines in the given logs.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The finding about those that belong to the job: a known process, an interpreter of Python, or a
/// program that the job's command lines or logs name. The kernel also ends programs of others, and
/// a job may survive.
std::optional<Finding> killed_by_kernel(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
