// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/dispatch_words.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/dispatch.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/unlike_environment.h"

namespace ddpdoctor::detectors {
namespace {

const Side& caller_of(const Explanation& explanation) {
  return explanation.branch->leads_to_ours ? explanation.parting.odd : explanation.parting.rest;
}

const Side& other_of(const Explanation& explanation) {
  return explanation.branch->leads_to_ours ? explanation.parting.rest : explanation.parting.odd;
}

/// For example "Archivist.close on rank 0 and Plain.close on ranks 1-3".
std::string who_runs(const Explanation& explanation) {
  const Dispatch& dispatch = *explanation.dispatch;
  const std::string runs =
      fmt::format("{} on {}", dispatch.runs, said(caller_of(explanation).ranks));
  const std::string others = said(other_of(explanation).ranks);
  return dispatch.instead.empty() ? fmt::format("{} and a different function on {}", runs, others)
                                  : fmt::format("{} and {} on {}", runs, dispatch.instead, others);
}

std::string verb_of(const Dispatch& dispatch) {
  return dispatch.of_lists ? "runs" : "is";
}

/// For example "`number == 0` (parts.py:34)".
std::string chosen(const Dispatch& dispatch) {
  return fmt::format("{} ({})", in_backquotes(dispatch.chosen_by), line_of(dispatch.chosen));
}

/// Adds the line where the origin of the choice ends, if it is a different line.
void add_dispatch_origin(const Dispatch& dispatch, Finding& finding) {
  const auto& chain = dispatch.origin.chain;
  if (dispatch.origin.source <= program::Source::kUnknown || chain.empty() ||
      chain.back().line == dispatch.chosen.line) {
    return;
  }
  const std::string& file = chain.back().file.empty() ? dispatch.call.file : chain.back().file;
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text =
           fmt::format("{} depends on {}: {} ({}:{})", in_backquotes(dispatch.chosen_by),
                       program::name_of(dispatch.origin.source), in_backquotes(chain.back().text),
                       base::file_name(file), chain.back().line)});
}

std::string fix_of(const Explanation& explanation) {
  const Dispatch& dispatch = *explanation.dispatch;
  const std::string call = fmt::format("`{}` ({})", dispatch.callee, line_of(dispatch.call));
  if (dispatch.origin.source == program::Source::kRank) {
    const std::string why = dispatch.chosen.known()
                                ? fmt::format("; {} chooses it by the rank", chosen(dispatch))
                                : std::string();
    return fmt::format("Call {} in every function that {} can run, or in none of them{}.",
                       caller_of(explanation).operation, call, why);
  }
  const auto& variables = dispatch.origin.variables;
  if (!variables.empty()) {
    return fmt::format(
        "Give every rank the same {}, or read it on rank 0 and broadcast it: it "
        "decides which function {} runs.",
        variables.front(), call);
  }
  return dispatch.chosen.known()
             ? fmt::format(
                   "Choose the same function for {} on every rank: all_reduce or broadcast "
                   "the value of {} before it is used.",
                   call, chosen(dispatch))
             : fmt::format(
                   "Choose the same function for {} on every rank, or call {} in every "
                   "function that it can run.",
                   call, caller_of(explanation).operation);
}

}  // namespace

void add_dispatch(const Explanation& explanation, Finding& finding) {
  const Dispatch& dispatch = *explanation.dispatch;
  // The report shows values that were read next to the line.
  finding.locations.push_back(
      location(dispatch.call, {},
               dispatch.by_value
                   ? std::string("runs different functions")
                   : fmt::format("this call {} {}", verb_of(dispatch), who_runs(explanation))));
  if (dispatch.chosen.known() && !graph::same_line(dispatch.chosen, dispatch.call)) {
    finding.locations.push_back(location(dispatch.chosen, {}, "chooses the function"));
  }
  if (dispatch.other.known()) {
    finding.locations.push_back(
        location(dispatch.other, other_of(explanation).ranks,
                 fmt::format("{} {} this one", said(other_of(explanation).ranks),
                             other_of(explanation).ranks.size() == 1 ? "runs" : "run")));
  }
}

void tell_dispatch(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  const Dispatch& dispatch = *explanation.dispatch;
  const Parting& parting = explanation.parting;
  const std::string what = fmt::format("`{}` ({}) {} {}", dispatch.callee, line_of(dispatch.call),
                                       verb_of(dispatch), who_runs(explanation));
  const std::string why =
      dispatch.chosen.known() ? fmt::format(", chosen by {}", chosen(dispatch)) : std::string();
  finding.summary = fmt::format("{}{}; {}; {}", what, why, odd_does(examination, explanation),
                                rest_waits(examination, explanation));
  finding.fix = fix_of(explanation);
  add_dispatch_origin(dispatch, finding);
  const std::string variable =
      unlike_variable(examination.job, lines_of(examination.job, dispatch.chosen.file),
                      dispatch.chosen_by, dispatch.chosen.line);
  if (!variable.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt, .text = how_unlike(examination.job, variable)});
  }
  if (const std::string_view own = decider(dispatch.origin.source); !own.empty()) {
    finding.details["decided_by"] = std::string(own);
  }
  if (!parting.odd.calls() && dispatch.instead.empty()) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  }
}

}  // namespace ddpdoctor::detectors
