// SPDX-License-Identifier: Apache-2.0
// The part of a finding that is the same for every cause of a parting: who, who waits, which lines,
// what was seen.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Culprits, waiting ranks, confidence, locations (culprit's line, waiting line, branch) and
/// evidence. `extra_facts` come on top of records and stacks.
Finding finding_of(const graph::Examination& examination, const Explanation& explanation,
                   int extra_facts = 0);

/// One finding for each explanation with this cause; `tell` writes summary and fix.
Findings findings_with(const graph::Examination& examination, Cause cause, std::string_view kind,
                       const std::function<void(const Explanation&, Finding&)>& tell);

/// "all_reduce #12 of default_pg" where the others wait.
std::string waiting_call(const graph::Examination& examination, const Explanation& explanation);

/// "barrier at train.py:61 in evaluate", or where the odd ranks stand.
std::string odd_place(const graph::Examination& examination, const Explanation& explanation);

/// The user's source line at a place, trimmed and in backquotes; empty when it is not known.
std::string source_quote(const model::JobModel& job, const model::CallSite& site);

/// A condition in backquotes, shortened to one line.
std::string condition_quote(const Branch& branch);

/// With what may have been it as well: "`loss < tol` or `n > limit`".
std::string conditions_quote(const Branch& branch);

/// The same with their places: "`loss < tol` (a.py:3) and `n > limit` (a.py:5)".
std::string conditions_placed(const Branch& branch);

}  // namespace ddpdoctor::detectors
