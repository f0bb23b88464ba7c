// SPDX-License-Identifier: Apache-2.0
// The phrases of findings for calls, lines, waiting times and sets of ranks, so that all findings
// use the same words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "default_pg" for the world, else the group's name or id; empty if the id is.
std::string group_name(const model::JobModel& job, std::string_view group);

/// "all_reduce #1043 of default_pg"; unknown parts are omitted.
std::string call_name(const model::JobModel& job, std::string_view operation,
                      std::string_view group, std::optional<std::int64_t> sequence);
std::string call_name(const model::JobModel& job, const graph::BlockedCall& call);
std::string call_name(const model::JobModel& job, const model::CollectiveCall& call);

/// "train.py:58, evaluate", for use in parentheses; "line unknown" if no stack shows it.
std::string place(const model::CallSite& site);
/// " (train.py:58, evaluate)", for use after the verb; empty if the line is unknown.
std::string placed(const model::CallSite& site);
/// "train.py:58", for a line whose function is clear.
std::string line_of(const model::CallSite& site);

/// Comprehensions and lambdas have no name of their own: "fit.<locals>.<genexpr>" is "fit".
std::string named_function(std::string_view function);

/// "thread 31"; "thread loader" if the dump has no thread number.
std::string thread_name(const model::Thread& thread);
/// "thread 31 (loader)".
std::string full_thread_name(const model::Thread& thread);

/// What a rank does, as the end of a sentence: "is in barrier #12 of default_pg
/// (train.py:58, evaluate)".
std::string whereabouts(const model::JobModel& job, const graph::Standing& standing);
/// The same with a subject, for ranks that all do it: "ranks 0-2 are in barrier #12".
std::string whereabouts(const model::JobModel& job, const model::RankSet& ranks,
                        const graph::Standing& standing);

/// "ranks 0-2 are waiting here, in all_reduce, for 4 min 12 s" (`what` is "in all_reduce"); the
/// time only if the job contains it.
std::string waiting_here(const model::JobModel& job, const model::RankSet& ranks,
                         std::string_view what = {});

/// "is" or "are", "has" or "have" by number of ranks.
std::string_view is_or_are(const model::RankSet& ranks);
std::string_view has_or_have(const model::RankSet& ranks);
/// "rank 3 waits", "ranks 0-2 wait": the verb agrees with the number of ranks.
std::string ranks_do(const model::RankSet& ranks, std::string_view one, std::string_view many);

/// "rank 3", "ranks 0 and 2", "ranks 0-2,4"; sets of more than ten outliers as "ranks 0-6,8 and 12
/// others".
std::string said(const model::RankSet& ranks);

/// A relevant line, for one rank or several ranks that share it.
Location location(const model::CallSite& site, const model::RankSet& ranks, std::string note);
/// The user line at which a rank is.
Location location(const graph::Standing& standing, std::string note);

/// One evidence sentence per line of the ranks, at most ten; the last one counts the rest.
void add_whereabouts(Finding& finding, const graph::Examination& examination,
                     const model::RankSet& ranks);

/// "[1000, 7]"
std::string shape_text(const std::vector<std::int64_t>& shape);

/// JSON text for details: "\"x\"" with escapes.
std::string quoted(std::string_view text);

}  // namespace ddpdoctor::detectors
