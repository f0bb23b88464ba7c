// SPDX-License-Identifier: Apache-2.0
// The phrases that all causes of a divergence share: which rank called what, under which condition,
// and where the others are waiting.
#pragma once

#include <string>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// "all_reduce #12 of default_pg": the call in which the rest is waiting.
std::string waiting_call(const graph::Examination& examination, const Explanation& explanation);

/// "barrier (train.py:61, evaluate)", or what the odd ranks do instead.
std::string odd_place(const graph::Examination& examination, const Explanation& explanation);

/// "rank 0 called barrier"; "rank 0 is sleeping (train.py:61, evaluate)" if it makes no call.
std::string odd_does(const graph::Examination& examination, const Explanation& explanation);

/// "ranks 1-3 are waiting in all_reduce"; "ranks 1-3 are computing (train.py:61, evaluate)" if they
/// make no call.
std::string rest_waits(const graph::Examination& examination, const Explanation& explanation);

/// Source text on one line and in backquotes, shortened.
std::string in_backquotes(std::string text);

/// The user's source line, trimmed and in backquotes; empty if it is unknown.
std::string source_quote(const model::JobModel& job, const model::CallSite& site);

/// A condition in backquotes, shortened to one line.
std::string condition_quote(const Branch& branch);

/// With other possible conditions: "`loss < tol` or `n > limit`".
std::string conditions_quote(const Branch& branch);

/// The same with lines: "`loss < tol` (a.py:3) or `n > limit` (a.py:5)".
std::string conditions_placed(const Branch& branch);

/// "inside `if rank == 0` (train.py:14)"; empty if the condition does not enclose the line that it
/// guards (an early return).
std::string inside(const model::JobModel& job, const Branch& branch);

/// What the branch does, as the note of its line: "decides which ranks call it".
const char* note_on(const Branch& branch);

}  // namespace ddpdoctor::detectors
