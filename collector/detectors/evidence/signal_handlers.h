// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a signal calls: they run between any two lines of the main thread.
#pragma once

#include <optional>
#include <vector>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// A handler on a stack, and the frame below it, which was interrupted and did not call it.
struct Interruption {
  const model::Frame* handler = nullptr;
  const model::Frame* interrupted = nullptr;
};

/// The innermost interruption of the thread: a user function registered by a `signal.signal(…)` in
/// the sources, above a line that does not call it.
std::optional<Interruption> interruption(const model::JobModel& job, const model::Thread& thread);

/// The sources register the function of the frame for a signal.
bool is_signal_handler(const model::JobModel& job, const model::Frame& frame);

/// The waiting function was not called: a signal ran it. Changes the finding about its thread, the
/// only one of `waiting`.
void tell_interruption(const std::vector<Suspect>& waiting, const Interruption& signal,
                       Finding& finding);

}  // namespace ddpdoctor::detectors
