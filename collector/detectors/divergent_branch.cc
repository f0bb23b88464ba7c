// SPDX-License-Identifier: Apache-2.0
// Every rank decides by its own data, clock, metric or file test whether to make a collective, and
// they decide differently.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/call_sites/deciding_origin.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/detectors/call_sites/unlike_environment.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

// The two calls are known, the condition that led there is not.
void tell_calls(const graph::Examination& examination, const Explanation& explanation,
                Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} came to {} where {} came to {}: they went different ways before", said(parting.odd.ranks),
      odd_place(examination, explanation), said(parting.rest.ranks), place(parting.rest.site()));
  finding.fix =
      "Find the condition before these two lines that came out differently (training mode, a loss, "
      "a flag), and let the ranks decide together: all_reduce or broadcast what it tests.";
}

/// How ranks come to one answer, by what of their own decides it now; `{}` is the condition with
/// its place.
std::string agree_on(program::Source source, const std::string& condition) {
  switch (source) {
    case program::Source::kClock:
      return fmt::format(
          "Read the clock on rank 0 only and broadcast the answer to {}: each rank's own clock "
          "decides it now.",
          condition);
    case program::Source::kRandom:
      return fmt::format(
          "Draw on rank 0 only and broadcast the answer to {}, or give every rank a generator of "
          "one seed: each rank's own random state decides it now.",
          condition);
    case program::Source::kFiles:
      return fmt::format(
          "Ask the file system on rank 0 only and broadcast the answer to {}: each rank's own view "
          "of the file system decides it now.",
          condition);
    case program::Source::kCache:
      return fmt::format(
          "Count a miss on any rank as a miss on all (all_reduce with MAX) before {} is tested: "
          "each rank's own cache decides it now.",
          condition);
    case program::Source::kQueue:
      return fmt::format(
          "Take from the queue on rank 0 only and broadcast what came, or all_reduce the answer to "
          "{}: each rank's own queue decides it now.",
          condition);
    case program::Source::kException:
      return fmt::format(
          "Set a flag in the except clause and all_reduce it before {} is tested: each rank's own "
          "exception decides it now.",
          condition);
    case program::Source::kUniform:
    case program::Source::kEnvironment:
    case program::Source::kUnknown:
    case program::Source::kLength:
    case program::Source::kData:
    case program::Source::kSignal:
    case program::Source::kRank:
      break;
  }
  return fmt::format(
      "Let the ranks decide together: all_reduce or broadcast the value behind {} before it is "
      "tested.",
      condition);
}

// A step that was left out: what else can have done it is not known unless the reducers count.
void tell_skip(const graph::Examination& examination, const Explanation& explanation,
               Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string odd = said(parting.odd.ranks);
  const std::string rest = said(parting.rest.ranks);
  const std::string quote = condition_quote(branch);
  const std::string where = place(branch.where);
  if (branch.catches) {
    finding.details["decided_by"] = std::string(decider(program::Source::kException));
    finding.summary = fmt::format(
        "{} went on to {} without {}: {} ({}) caught an exception there that {} did not have", odd,
        odd_place(examination, explanation), waiting_call(examination, explanation), quote, where,
        rest);
    const std::string catcher =
        branch.condition.starts_with("with") ? "a try with an except clause in its place" : quote;
    finding.fix = fmt::format(
        "Leave the step out on every rank or on none: let {} set a flag, all_reduce it, and skip "
        "where any rank set it; or let the exception end the job.",
        catcher);
  } else {
    finding.summary =
        fmt::format("{} went on to {} without {}: {} ({}) skipped a step there that {} made", odd,
                    odd_place(examination, explanation), waiting_call(examination, explanation),
                    quote, where, rest);
    finding.fix = fmt::format(
        "Skip the step on every rank or on none: all_reduce whether {} before the continue ({}), "
        "or keep such data from the loop.",
        quote, where);
  }
  if (began_fewer_backwards(examination.job, parting).value_or(false)) {
    finding.evidence.push_back(
        {.rank = std::nullopt, .text = fmt::format("{} began fewer backwards than {}", odd, rest)});
  } else {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  }
}

// A line search, a retry: how often it calls is decided by what the rank's own calls gave.
void tell_callback(const Explanation& explanation, Finding& finding) {
  const Callback& callback = *explanation.callback;
  const Parting& parting = explanation.parting;
  const bool odd_is_in_it = explanation.fork->ours.line == callback.where.line;
  const Side& out = odd_is_in_it ? parting.rest : parting.odd;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.summary = fmt::format(
      "{}() called {} {} often on {} than on {}: it decides that on each rank by itself, and {} {} "
      "gone on to {}",
      callback.caller, callback.called, odd_is_in_it ? "more" : "less", said(parting.odd.ranks),
      said(parting.rest.ranks), said(out.ranks), has_or_have(out.ranks),
      out.calls() ? out.operation + " at " + place(out.site()) : place(out.site()));
  finding.locations.push_back(
      location(callback.where, {},
               fmt::format("calls {} as often as the rank's own values ask", callback.called)));
  const bool tries_again = callback.caller.find("retry") != std::string::npos;
  finding.fix =
      tries_again
          ? fmt::format(
                "Let the ranks decide together whether to call {} again: all_reduce "
                "whether it failed on any of them.",
                callback.called)
          : fmt::format(
                "Let {} return what all ranks agreed on: all_reduce the loss as well as the "
                "gradients before it returns, and give {}() the same limits everywhere.",
                callback.called, callback.caller);
}

/// "barrier", and what stands between the match and it: "self.save" leads there, too.
bool makes_call(const program::SourceText& lines, const program::Case& one, const Side& side) {
  for (int line = one.line; line <= one.last_line; ++line) {
    const std::string statement = program::statement_at(lines, line);
    for (const program::Call& call : program::calls_in(statement)) {
      const std::string_view name = program::last_name(call.callee);
      const bool leads_there =
          name.find(side.operation) != std::string_view::npos ||
          std::any_of(side.path.begin(), side.path.end(), [name](const model::CallSite& site) {
            return program::last_name(site.function) == name;
          });
      if (leads_there) {
        return true;
      }
    }
  }
  return false;
}

// The value of a match is what the program gave each rank on purpose: one of its cases lacks the
// call that others make.
void tell_cases(const graph::Examination& examination, const Explanation& explanation,
                Finding& finding) {
  const Branch& branch = *explanation.branch;
  const auto& lines = lines_of(examination.job, branch.where.file);
  const Side& side = branch.leads_to_ours ? explanation.parting.odd : explanation.parting.rest;
  std::string lacking;
  for (const program::Case& one : program::cases_of(lines, branch.where.line)) {
    if (makes_call(lines, one, side)) {
      continue;
    }
    const model::CallSite where{
        .file = branch.where.file, .line = one.line, .function = branch.where.function};
    finding.locations.push_back(location(where, {}, "a case without that call"));
    lacking += fmt::format("{}`case {}` ({}:{})", lacking.empty() ? "" : " and ", one.pattern,
                           base::file_name(where.file), where.line);
  }
  if (!lacking.empty()) {
    finding.fix = fmt::format("Make the {} in every case, {} included, or once behind the match.",
                              side.operation, lacking);
  }
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  if (explanation.callback) {
    tell_callback(explanation, finding);
    return;
  }
  if (!explanation.branch) {
    tell_calls(examination, explanation, finding);
    return;
  }
  if (explanation.branch->skips || explanation.branch->catches) {
    tell_skip(examination, explanation, finding);
    return;
  }
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string what =
      branch.leads_to_ours ? fmt::format("went to {}", odd_place(examination, explanation))
                           : fmt::format("passed by {}", waiting_call(examination, explanation));
  finding.summary =
      fmt::format("{} {} because {} came out differently there than on {}", said(parting.odd.ranks),
                  what, conditions_quote(branch), said(parting.rest.ranks));
  const std::string variable =
      unlike_variable(examination.job, lines_of(examination.job, branch.where.file),
                      branch.condition, branch.where.line);
  if (!variable.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt, .text = how_unlike(examination.job, variable)});
    finding.fix = fmt::format(
        "Give every rank the same {}, or read it on one rank and broadcast it before {} ({}).",
        variable, condition_quote(branch), place(branch.where));
    return;
  }
  const program::Source source = branch.or_else.empty() ? origin_of(examination.job, branch).source
                                                        : program::Source::kUnknown;
  finding.fix = agree_on(source, conditions_placed(branch));
  if (const std::string_view own = decider(source); !own.empty()) {
    finding.details["decided_by"] = std::string(own);
  }
  tell_cases(examination, explanation, finding);
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kDivergent, "divergent-branch",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  if (!findings.empty()) {
    return findings;
  }
  if (const auto unseen = unseen_decision(examination);
      unseen && unseen->source != program::Source::kRank) {
    findings.push_back(finding_of(examination, *unseen, "divergent-branch"));
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stands still at no particular step; some ranks are in a save, an evaluation or an early-stopping path, the rest
trains on.

Why: a collective, or the way out of the loop, stands under a condition that each rank evaluates by itself: its own loss, the clock,
os.path.exists on a shared file system, a NaN in its own batch. Sooner or later the answers differ, and one side makes a call that
the other does not.

The fix names what decides: the rank's clock, its random state, its view of the file system, an exception, a cache hit, a queue, or data.

A `continue` on a rank's own batch, or an except that goes on after an exception ("out of memory: skip the batch"), leaves out a whole
step: from then on each call of this rank meets one of a step before on the others.

How it is recognised: the ranks part at a condition of your source that does not test the rank and is not alike on all ranks (step
counters and options are). Its value is followed to where it comes from, through variables, functions, attributes and files; where no source
at hand shows that, the report says so and is likely at most. Or, where no condition parts them, a `continue` or an except stands round the call that one side is past. `run`
counts the backwards and is certain then. A library that calls the program back as often as it likes (the line search of LBFGS, scipy's minimize, a
retry) decides so, too.

The fix: decide once, then tell everybody.

    +    stop = torch.tensor([float(val_loss > best)])
    +    dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    -    if val_loss > best:
    +    if stop.item() > 0:
             save_and_stop()
)";

}  // namespace

extern const Detector divergent_branch;
const Detector divergent_branch = {
    .kind = "divergent-branch",
    .title = "Each rank decided by itself whether to make a collective",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors
