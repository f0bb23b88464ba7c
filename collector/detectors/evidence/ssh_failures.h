// SPDX-License-Identifier: Apache-2.0
// Why mpirun could not start its daemons: ssh and the remote shell say it before mpirun's general
// help text.
#pragma once

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// Replaces the general words of a finding about daemons that did not start, if a line of ssh says
/// why.
void tell_why_ssh_failed(const model::JobModel& job, Finding& finding);

}  // namespace ddpdoctor::detectors
