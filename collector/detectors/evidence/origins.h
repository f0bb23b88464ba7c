// SPDX-License-Identifier: Apache-2.0
// The number of independent origins of a finding. Text is one origin, however many lines and ranks
// repeat it, because a program may print anything.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The origin of a fact. The label before an evidence's text shows it: "log: …", "launcher: …",
/// "exit: …", "stack: …"; evidence without a label was seen or recorded by ddpdoctor.
enum class Origin {
  kSeen,      // stacks, records, files, the environment, the machine
  kText,      // a log or message: what a program wrote about itself
  kLauncher,  // what a launcher wrote about a rank: a table of exit statuses, an error file
  kEnd,       // an exit status or a signal that ddpdoctor or its agent saw
  kStack,     // a thread, or the current exception of an interpreter
};
Origin origin_of(const Evidence& evidence);

/// What a log, the kernel or a launcher wrote, without the label; empty for other evidence.
std::string_view quote_in(const Evidence& evidence);

/// At least a part of the evidence was written by programs or launchers.
bool rests_on_text(const Finding& finding);

/// Evidence that a rank failed, from its exit status or signal; nothing if it exited successfully
/// or was ended by another process.
std::optional<Evidence> own_end(const model::JobModel& job, model::Rank rank);

/// Adds evidence that supports a finding based on text (how its ranks ended, an interpreter's
/// current exception), and limits its confidence by the number of origins: certain needs two. Other
/// findings are unchanged.
void weigh_origins(const graph::Examination& examination, Finding& finding);

}  // namespace ddpdoctor::detectors
