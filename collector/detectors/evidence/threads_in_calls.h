// SPDX-License-Identifier: Apache-2.0
// Threads beside an idle main thread: a server computes in them.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "thread loader is in send_to_device (operations.py:158)", for each Python thread besides the
/// main one that is not waiting for work; few of many.
std::vector<std::string> threads_in_calls(const model::Process& process);

/// The same as evidence, for ranks whose main thread is in an idle event loop.
void tell_threads_in_calls(const graph::Examination& examination, Finding& finding);

/// Where each Python process is, if some are not ranks: an engine and its workers may wait for each
/// other.
void tell_other_processes(const graph::Examination& examination, Finding& finding);

}  // namespace ddpdoctor::detectors
