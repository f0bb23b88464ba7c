// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/fork_words.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

/// "rank 1 is here, in barrier", "ranks 0-2 are waiting for their GPUs here".
std::string where_it_is(const Side& side, const model::RankSet& ranks) {
  return side.calls()
             ? fmt::format("{} {} here, in {}", said(ranks), is_or_are(ranks), side.operation)
             : ranks_do(ranks, "is waiting for its GPU here", "are waiting for their GPUs here");
}

}  // namespace

void tell_fork(const model::JobModel& job, const Explanation& explanation, Finding& finding) {
  const Fork& fork = *explanation.fork;
  const Parting& parting = explanation.parting;
  const bool odd_is_first = fork.ours.line < fork.theirs.line;
  const model::CallSite& first = odd_is_first ? fork.ours : fork.theirs;
  const model::CallSite& second = odd_is_first ? fork.theirs : fork.ours;
  const model::RankSet& early = odd_is_first ? parting.odd.ranks : parting.rest.ranks;
  const model::RankSet& late = odd_is_first ? parting.rest.ranks : parting.odd.ranks;
  if (parting.tie) {  // each is in a call that the other has not made
    finding.culprits = {};
    finding.waiting = early.united(late);
  }
  // A part of a larger job's log may name two ranks only: then others may hold them up.
  const bool whole = job.world_size == 2;
  finding.confidence = whole ? finding.confidence : Confidence::kPossible;
  finding.summary =
      fmt::format("{} {} in {} ({}), {} at line {}: {}", said(early), is_or_are(early),
                  named_function(first.function), line_of(first), said(late), second.line,
                  whole ? "a loop ended earlier, or a condition differed; each waits for the other"
                        : "a loop or a condition may differ");
  std::erase_if(finding.locations, [&](const Location& one) {
    return (one.file == first.file && one.line == first.line) ||
           (one.file == second.file && one.line == second.line);
  });
  finding.locations.insert(
      finding.locations.begin(),
      {location(second, late, where_it_is(odd_is_first ? parting.rest : parting.odd, late)),
       location(first, early, where_it_is(odd_is_first ? parting.odd : parting.rest, early))});
  finding.fix = fmt::format(
      "If line {} is in a loop that ends before line {}: give every rank the same number of "
      "iterations, or all_reduce in each whether any rank has data. Otherwise decide once for all "
      "ranks.",
      first.line, second.line);
}

}  // namespace ddpdoctor::detectors
