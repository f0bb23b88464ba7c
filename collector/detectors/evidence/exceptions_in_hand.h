// SPDX-License-Identifier: Apache-2.0
// Exceptions in the interpreters of the ranks: one that is being handled now, or one that ended the
// program.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct ExceptionInHand {
  std::string exception;   // "ValueError: no such shard"
  model::CallSite raised;  // the user's innermost line in its traceback; unknown if there is none
  bool in_task = false;    // it ended a task of the event loop, and its result was never retrieved
  bool in_users_hand = false;  // a user's function on the rank's stack handles it
};

/// The exception of the except or finally block that the rank's main thread is in.
std::optional<ExceptionInHand> handled_by(const model::JobModel& job,
                                          const graph::Standing& standing);

/// An exception makes it leave a `with`: it is in __exit__, or in the generator behind the `with`.
bool leaves_a_with(const model::JobModel& job, const graph::Standing& standing);

/// The exception that ended the rank's program and was printed, if the rank has been exiting since;
/// or the unnoticed exception of a task in its event loop, which has been idle since.
std::optional<ExceptionInHand> failed_with(const model::JobModel& job,
                                           const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
