// SPDX-License-Identifier: Apache-2.0
// How many independent origins a finding rests on. Words are one origin, however many lines and
// ranks repeat them: a program may print whatever it likes.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Where a fact comes from. The label before an evidence's text tells it: "log: …", "launcher: …",
/// "exit: …", "stack: …"; without a label it is what ddpdoctor saw or recorded.
enum class Origin {
  kSeen,      // stacks, records, files, the environment, the machine
  kText,      // a log, a message: what a program wrote of itself
  kLauncher,  // what its launcher wrote of a rank: a table of exit statuses, an error file
  kEnd,       // an exit status or a signal that ddpdoctor or its agent saw
  kStack,     // a thread, or an exception in the hand of an interpreter
};
Origin origin_of(const Evidence& evidence);

/// The evidence consists of what programs or launchers wrote, at least in part.
bool rests_on_text(const Finding& finding);

/// That a rank failed, as its exit status or signal shows; nothing for one that ended well or that
/// others ended.
std::optional<Evidence> own_end(const model::JobModel& job, model::Rank rank);

/// Adds what bears out a finding that rests on text (how its ranks ended, the exception in the hand
/// of an interpreter), and lowers its confidence to what the number of origins allows: two are
/// needed for certain. Other findings stay as they are.
void weigh_origins(const graph::Examination& examination, Finding& finding);

}  // namespace ddpdoctor::detectors
