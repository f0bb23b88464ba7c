// SPDX-License-Identifier: Apache-2.0
// Processes that were killed without a known rank: the kernel's out-of-memory killer and the shell
// that waited for them say so in the given logs.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The finding about those that belong to the job: a known process, an interpreter of Python, or a
/// program that the job's command lines or logs name. Others are killed, too, and a job may
/// survive.
std::optional<Finding> told_kills(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
