// SPDX-License-Identifier: Apache-2.0
// What the detectors of processes, locks, data loading, start-up and exit have in common: the
// threads that hold a rank up, the ranks that wait because of them, and the finding built of both.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A thread in which a rank's waiting ends, and what was seen of it.
struct Suspect {
  std::optional<model::Rank> rank;  // absent: the process serves no rank we know
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;  // absent: the process has no readable thread
  model::CallSite place = {};             // the user's line to blame; unknown when there is none
  Confidence confidence = Confidence::kPossible;
  std::string note = {};       // said beside the line: "worker 77 stands here"
  std::string evidence = {};   // said below: why we think so
  std::string_view deed = {};  // "raised": what it did, where a detector tells several deeds apart
};

/// A suspect at the innermost user line of `thread`.
Suspect suspect_in(const graph::Examination& examination, const model::Process& process,
                   const model::Thread* thread);

/// The same cause at the same line is one finding: suspects grouped by place, places in order of
/// their first rank.
std::vector<std::vector<Suspect>> by_place(std::vector<Suspect> suspects);

/// The finding against `suspects` (one place, at least one): culprits, the ranks that wait for
/// them, locations, evidence and pids; summary and fix are the detector's to say.
Finding accuse(const graph::Examination& examination, std::string_view kind,
               const std::vector<Suspect>& suspects);

/// Where the culprits stand now: the next best when no line is known to blame.
void add_where_accused_stand(const graph::Examination& examination, Finding& finding);

/// Sets `waiting` to the ranks that wait, and says where they do.
void add_waiting(const graph::Examination& examination, Finding& finding);
/// The same for ranks that wait for something else.
void add_waiting(const graph::Examination& examination, model::RankSet waiting, Finding& finding);

/// What may be said of a thread that seems stuck: kLikely when two observations show it at one
/// place and nothing moved, kPossible when there was one look only, nothing when the job moves.
std::optional<Confidence> stuck(const graph::Examination& examination);

/// At most kPossible while a process around the ranks is only pausing: it may bring what is waited
/// for.
Confidence unless_somebody_acts(const graph::Examination& examination, Confidence confidence);

/// "rank 1", "ranks 0-1", "process 77": whom a finding is about.
std::string who(const std::vector<Suspect>& suspects);

/// "; ranks 0,2-3 wait for it" or nothing.
std::string and_who_waits(const Finding& finding);

}  // namespace ddpdoctor::detectors
