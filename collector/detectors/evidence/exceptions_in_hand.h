// SPDX-License-Identifier: Apache-2.0
// What the interpreters of the ranks say of their exceptions: one that is being handled at the
// moment, one that the program has failed with.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct ExceptionInHand {
  std::string exception;       // "ValueError: no such shard"
  model::CallSite raised;      // the user's innermost line of its traceback; unknown when none
  bool in_task = false;        // a task of its event loop ended with it, and nobody took it
  bool in_users_hand = false;  // a function of the user's on the rank's stack handles it
};

/// What the rank's main thread is in an except or finally block for.
std::optional<ExceptionInHand> handled_by(const model::JobModel& job,
                                          const graph::Standing& standing);

/// An exception leads it out of a `with`: it stands in its __exit__, or in the generator behind it.
bool leaves_a_with(const model::JobModel& job, const graph::Standing& standing);

/// What the rank's program has failed with and printed, on its way to its end since; or what a task
/// of its event loop has failed with unseen, since when the loop has nothing to do.
std::optional<ExceptionInHand> failed_with(const model::JobModel& job,
                                           const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
