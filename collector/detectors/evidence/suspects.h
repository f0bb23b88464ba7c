// SPDX-License-Identifier: Apache-2.0
// Common code of the detectors of processes, locks, data loading, start-up and exit: the threads
// that block a rank, the ranks that wait because of them, and the finding about both.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A thread at the end of a rank's wait chain, with its evidence.
struct Suspect {
  std::optional<model::Rank> rank;  // absent: the process serves no known rank
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;  // absent: the process has no readable thread
  model::CallSite place = {};             // the user's line to blame; unknown if there is none
  Confidence confidence = Confidence::kPossible;
  std::string note = {};      // shown next to the line: "worker 77 is here"
  std::string evidence = {};  // shown below: why the thread is suspected
  // Without a rank: "EngineCore_DP0 (pid 412)", from the label of its lines.
  std::string writer = {};
  // "raised": what it did, for detectors that distinguish several causes.
  std::string_view deed = {};
  model::CallSite retry = {};   // the line in a try that called the code again
  model::CallSite raiser = {};  // the innermost line of its exception, the user's or a library's
};

/// A suspect at the innermost user line of `thread`.
Suspect suspect_in(const graph::Examination& examination, const model::Process& process,
                   const model::Thread* thread);

/// The same cause at the same line is one finding: suspects grouped by line, lines in the order of
/// their first rank.
std::vector<std::vector<Suspect>> by_place(std::vector<Suspect> suspects);

/// The finding about `suspects` (one line, at least one suspect): culprits, the ranks that wait for
/// them, locations, evidence and pids; the detector adds summary and fix.
Finding accuse(const graph::Examination& examination, std::string_view kind,
               const std::vector<Suspect>& suspects);

/// Adds the current lines of the culprits, if no line to blame is known.
void add_where_accused_stand(const graph::Examination& examination, Finding& finding);

/// Sets `waiting` to the ranks that wait, and adds their lines.
void add_waiting(const graph::Examination& examination, Finding& finding);
/// The same for ranks that wait for something else.
void add_waiting(const graph::Examination& examination, model::RankSet waiting, Finding& finding);

/// If no line is known: those of the ranks that wait for a batch, as the worker was one of theirs.
void add_batch_readers(const graph::Examination& examination, Finding& finding);

/// The confidence that a thread is stuck: kLikely if two observations show it at one line without
/// progress, kPossible after only one snapshot, nothing if the job makes progress.
std::optional<Confidence> stuck(const graph::Examination& examination);

/// At most kPossible while a process around the ranks only pauses: it may end the wait.
Confidence unless_somebody_acts(const graph::Examination& examination, Confidence confidence);

/// "ranks 0 and 1 are here, in new_group"; the call only where they wait for other ranks.
std::string is_here(const model::RankSet& ranks, const graph::Standing& standing);

/// The process that wrote all of these lines, if its label is known and no rank; else empty.
std::string common_writer(const std::vector<Suspect>& suspects);

/// "rank 1", "ranks 0-1", "process 77": the subject of a finding.
std::string who(const std::vector<Suspect>& suspects);

/// "; ranks 0,2-3 wait for it", or empty.
std::string and_who_waits(const Finding& finding);

}  // namespace ddpdoctor::detectors
