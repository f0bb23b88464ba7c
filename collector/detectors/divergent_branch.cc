// SPDX-License-Identifier: Apache-2.0
// Each rank decides by its own data, clock, metric or file test whether to make a collective call,
// and the decisions differ.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/told_differences.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/apart_behind_gpus.h"
#include "collector/detectors/partings/dispatch_words.h"
#include "collector/detectors/partings/finalizer.h"
#include "collector/detectors/partings/fork_words.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/left_out_call.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/partings/two_groups.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/unlike_environment.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors::divergent_branch {
namespace {

// The two calls are known, but not the deciding condition.
void tell_calls(const graph::Examination& examination, const Explanation& explanation,
                Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format("{}{}; {}{}: an earlier condition decided differently",
                                odd_does(examination, explanation),
                                parting.odd.calls() ? placed(parting.odd.site()) : std::string(),
                                rest_waits(examination, explanation),
                                parting.rest.calls() ? placed(parting.rest.site()) : std::string());
  finding.fix =
      "Print the conditions before these two lines (training mode, a loss, a flag) on both ranks; "
      "all_reduce or broadcast the one that differs.";
  if (each_waits_for_the_other(examination, explanation) ||
      (!explanation.branch && stand_in_one_function(examination.job, explanation))) {
    tell_fork(examination.job, explanation, finding);
  }
}

/// How ranks can decide together, by what decides on each rank now; `{}` is the condition with its
/// line.
std::string agree_on(program::Source source, const std::string& condition) {
  switch (source) {
    case program::Source::kClock:
      return fmt::format(
          "Read the clock on rank 0 only and broadcast the result of {}: now each rank reads its "
          "own clock.",
          condition);
    case program::Source::kRandom:
      return fmt::format(
          "Draw on rank 0 only and broadcast the result of {}, or seed the generators with "
          "the same value: now each rank has its own random state.",
          condition);
    case program::Source::kFiles:
      return fmt::format(
          "Check the file system on rank 0 only and broadcast the result of {}: now each rank has "
          "its own view of it.",
          condition);
    case program::Source::kCache:
      return fmt::format(
          "all_reduce the cache miss with MAX before {}, so that all ranks miss together: now each "
          "rank has its own cache.",
          condition);
    case program::Source::kQueue:
      return fmt::format(
          "Read the queue on rank 0 only and broadcast the item, or all_reduce the result of {}: "
          "now each rank has its own queue.",
          condition);
    case program::Source::kException:
      return fmt::format(
          "Set a flag in the except clause and all_reduce it before {}: now only the rank that had "
          "the exception knows of it.",
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
      "Decide once for all ranks: all_reduce or broadcast the value before {} is tested.",
      condition);
}

// A skipped step: other causes are excluded only if the reducers count the backward passes.
void tell_skip(const graph::Examination& examination, const Explanation& explanation,
               Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string odd = said(parting.odd.ranks);
  const std::string rest = said(parting.rest.ranks);
  const std::string quote = condition_quote(branch);
  const std::string where = line_of(branch.where);
  if (branch.catches) {
    finding.details["decided_by"] = std::string(decider(program::Source::kException));
    finding.summary = fmt::format(
        "{} skipped {} because {} ({}) caught an error; {} had no error and {} waiting", odd,
        waiting_call(examination, explanation), quote, where, rest, is_or_are(parting.rest.ranks));
    const std::string catcher =
        branch.condition.starts_with("with") ? "an except clause in its place" : quote;
    finding.fix = fmt::format(
        "Set a flag in {}, all_reduce it, and skip the step on every rank if any rank set it; or "
        "let the exception end the job.",
        catcher);
  } else {
    finding.summary = fmt::format(
        "{} skipped {} because of {} ({}); {} did not skip it and {} waiting", odd,
        waiting_call(examination, explanation), quote, where, rest, is_or_are(parting.rest.ranks));
    finding.fix = fmt::format(
        "all_reduce {} ({}) and skip the step on every rank or on none; or remove such data before "
        "the loop.",
        quote, where);
  }
  if (began_fewer_backwards(examination.job, parting).value_or(false)) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("{} started fewer backward passes than {}", odd, rest)});
  } else {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  }
}

// Each process has its own cache: one rank has seen these arguments, and another has not.
void tell_cache(const Explanation& explanation, Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const Side& ran = branch.leads_to_ours ? parting.odd : parting.rest;
  const Side& kept = branch.leads_to_ours ? parting.rest : parting.odd;
  finding.summary = fmt::format(
      "{} called {} inside {}() ({}); {} got its kept result from {} ({}) and skipped the call",
      said(ran.ranks), ran.operation, branch.guarded.function, line_of(branch.guarded),
      said(kept.ranks), condition_quote(branch), line_of(branch.where));
  finding.fix = fmt::format(
      "Move {} out of {}(), or call {}() with the same arguments on every rank: each rank has its "
      "own cache.",
      ran.operation, branch.guarded.function, branch.guarded.function);
  finding.details["decided_by"] = std::string(decider(program::Source::kCache));
}

// A line search or a retry: the results on each rank decide how often it calls the function.
void tell_callback(const Explanation& explanation, Finding& finding) {
  const Callback& callback = *explanation.callback;
  const Parting& parting = explanation.parting;
  const bool odd_is_in_it = explanation.fork->ours.line == callback.where.line;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.summary = fmt::format(
      "{}() called {}() {} times on {} than on {}; each rank chooses the number of calls by itself",
      callback.caller, callback.called, odd_is_in_it ? "more" : "fewer", said(parting.odd.ranks),
      said(parting.rest.ranks));
  finding.locations.push_back(location(
      callback.where, {},
      fmt::format("the number of {}() calls depends on the rank's own values", callback.called)));
  const bool tries_again = callback.caller.find("retry") != std::string::npos;
  finding.fix =
      tries_again
          ? fmt::format("all_reduce whether {}() failed, so that all ranks retry or none does.",
                        callback.called)
          : fmt::format(
                "Return the same values from {}() on every rank: all_reduce the loss and "
                "the gradients, and give {}() the same limits.",
                callback.called, callback.caller);
}

/// The case calls the operation ("barrier") or a function that leads to it ("self.save").
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

// By design, each rank has a different value in the match: one of its cases lacks the call that the
// others make.
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
    finding.locations.push_back(location(where, {}, "this case does not call it"));
    lacking += fmt::format("{}`case {}` ({}:{})", lacking.empty() ? "" : " and ", one.pattern,
                           base::file_name(where.file), where.line);
  }
  if (!lacking.empty()) {
    finding.fix = fmt::format("Call {} in every case, also in {}, or once after the match.",
                              side.operation, lacking);
  }
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  if (explanation.callback) {
    tell_callback(explanation, finding);
    return;
  }
  if (explanation.dispatch) {
    tell_dispatch(examination, explanation, finding);
    return;
  }
  if (!explanation.branch) {
    if (one_is_in_a_finalizer(explanation.parting)) {
      tell_finalizer(explanation, finding);
    } else if (left_out_by_rhythm(examination, explanation.parting)) {
      tell_left_out(examination, explanation, finding);
    } else {
      tell_calls(examination, explanation, finding);
    }
    return;
  }
  if (explanation.branch->caches) {
    tell_cache(explanation, finding);
    return;
  }
  if (explanation.branch->skips || explanation.branch->catches) {
    tell_skip(examination, explanation, finding);
    return;
  }
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string odd = said(parting.odd.ranks);
  const std::string rest = said(parting.rest.ranks);
  finding.summary =
      branch.leads_to_ours
          ? fmt::format("{} differed between {} and {}, so only {}", conditions_placed(branch), odd,
                        rest, odd_does(examination, explanation))
          : fmt::format("{} differed between {} and {}, so {} skipped {}",
                        conditions_placed(branch), odd, rest, odd,
                        waiting_call(examination, explanation));
  const std::string variable =
      unlike_variable(examination.job, lines_of(examination.job, branch.where.file),
                      branch.condition, branch.where.line);
  if (!variable.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt, .text = how_unlike(examination.job, variable)});
    finding.fix = fmt::format(
        "Give every rank the same {}, or read it on rank 0 and broadcast it before {} ({}).",
        variable, condition_quote(branch), line_of(branch.where));
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

/// Only a log is known: OpenMMLab compares the names of the losses before it reduces them.
Findings unlike_losses(const graph::Examination& examination) {
  const ToldDifference difference = told_difference(examination.job, "divergent-branch");
  if (difference.exception.empty()) {
    return {};
  }
  const ToldSides sides = sides_of(difference);
  Finding finding = finding_of(examination, difference, sides, "divergent-branch");
  finding.summary =
      sides.odd.empty()
          ? "the ranks computed different losses, so they would call different numbers of "
            "all_reduce"
          : fmt::format(
                "the losses of the ranks differ: {} {}, unlike {}; each loss is an "
                "all_reduce of its own",
                said(sides.odd),
                how_lists_differ(sides.odd_value, sides.rest_value, sides.odd.size() > 1),
                said(sides.rest));
  finding.fix =
      "Return the same losses on every rank, also for a batch without targets: `0 * output.sum()` "
      "for a loss that such a batch lacks.";
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kDivergent, "divergent-branch",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  if (findings.empty()) {
    findings = unlike_losses(examination);
  }
  if (findings.empty()) {
    findings = unseen_findings(examination, "divergent-branch");
  }
  return findings.empty() ? apart_behind_gpus(examination) : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs at no particular step; some ranks are in a save, an evaluation or an early-stopping path, the others
continue to train.

Why: a collective, or the exit of the loop, depends on a condition that each rank evaluates by itself: its own loss, the clock,
os.path.exists on a shared file system, a NaN in its own batch. At some step the results differ, and some ranks make a call that the
others do not make.

The fix in the report names what the condition depends on: the rank's clock, its random state, its view of the file system, an
exception, a cache hit, a queue, or data.

A `continue` for a rank's own batch, or an except clause that continues after an exception ("out of memory: skip the batch"), skips a
whole step: from then on each call of this rank pairs with a call of an earlier step on the others.

How ddpdoctor knows: the ranks diverge at a condition of your source that does not test the rank and that can differ between ranks
(step counters and options do not differ). ddpdoctor follows its value to its origin through variables, functions, attributes and
files; if no available source file shows the origin, the report says so and the confidence is likely at most. If no condition
separates the ranks, the report names a `continue` or an except clause around the skipped call. `ddpdoctor run` counts the backward
passes and can then be certain. A library that calls your function as often as it needs (the line search of LBFGS, scipy's minimize, a
retry) decides in the same way.

A framework (a trainer) runs the same code on every rank. If it led the ranks to different calls, ddpdoctor names its condition and what
your program gives it by a decision of each rank's own: None or a missing item from a collate function, a value that a hook returns, an
attribute that a callback sets, the result of a metric.

Fix: decide once, then send the result to every rank.

    +    stop = torch.tensor([float(val_loss > best)])
    +    dist.all_reduce(stop, op=dist.ReduceOp.MAX)
    -    if val_loss > best:
    +    if stop.item() > 0:
             save_and_stop()
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "divergent-branch",
                           .title = "Each rank decided by itself whether to call a collective",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::divergent_branch
