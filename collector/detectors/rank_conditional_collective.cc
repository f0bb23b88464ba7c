// SPDX-License-Identifier: Apache-2.0
// A condition that tests the rank (`if rank == 0:`) decides which ranks call a collective; the
// others skip it. The call may be matched with the others' next call, so the hang is visible at a
// later line: the first difference counts.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/dispatch_words.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/partings/user_call.h"
#include "collector/detectors/paths/own_half.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::rank_conditional_collective {
namespace {

/// The call under the test must change, wherever the ranks that skipped it wait now.
void put_guarded_call_first(const Parting& parting, Finding& finding) {
  const auto guarded =
      std::find_if(finding.locations.begin(), finding.locations.end(), [&](const Location& one) {
        return one.file == parting.rest.site().file && one.line == parting.rest.site().line;
      });
  if (guarded != finding.locations.end()) {
    std::rotate(finding.locations.begin(), guarded, guarded + 1);
  }
}

/// What the user can move: the call as written in the source, else the operation.
std::string named(const model::JobModel& job, const Side& side, std::string_view otherwise) {
  const std::string call = user_call(job, side);
  if (!call.empty()) {
    return call;
  }
  return side.operation.empty() ? std::string(otherwise) : side.operation;
}

/// The call of the odd ranks that pairs with the one in which the others wait, in a function that
/// the odd ranks have left.
std::optional<OwnHalf> missed_half(const model::JobModel& job, const Parting& parting) {
  const model::CallSite& first = parting.rest.site();
  const bool in_it = std::any_of(
      parting.odd.path.begin(), parting.odd.path.end(), [&first](const model::CallSite& site) {
        return site.file == first.file && site.function == first.function;
      });
  return in_it ? std::nullopt : own_half(job, first, parting.rest.operation, parting.odd.ranks);
}

/// Each side has its own call under a test of the rank, by design; one way through the function
/// skips the second call.
void tell_missed_half(const OwnHalf& half, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const std::string who = said(parting.odd.ranks);
  finding.summary =
      fmt::format("{} returned from {}() before its {} ({}); {} in the matching {} ({})", who,
                  half.call.function, parting.rest.operation, line_of(half.call),
                  ranks_do(parting.rest.ranks, "is waiting", "are waiting"), parting.rest.operation,
                  line_of(parting.rest.site()));
  std::erase_if(finding.locations, [&explanation](const Location& one) {
    return one.file == explanation.branch->where.file && one.line == explanation.branch->where.line;
  });
  finding.locations.push_back(location(half.call, {}, fmt::format("{} skipped this call", who)));
  if (half.way_out) {
    finding.locations.push_back(location(half.way_out->where, {}, "returns before it"));
    finding.fix = fmt::format(
        "Call {} on {} on every path through {}(), also before the return under `{}` ({}).",
        parting.rest.operation, who, half.call.function, half.way_out->condition,
        line_of(half.way_out->where));
  } else {
    finding.fix = fmt::format("Call {} ({}) on {} on every path through {}().",
                              parting.rest.operation, line_of(half.call), who, half.call.function);
  }
}

/// All ranks call from this line (a layer that reduces), and the odd ones reached it through
/// another line.
bool came_its_own_way(const Branch& branch, const Parting& parting) {
  const Path& path = parting.odd.path;
  return branch.leads_to_ours && graph::same_line(parting.odd.site(), parting.rest.site()) &&
         !graph::same_line(branch.guarded, parting.odd.site()) &&
         std::any_of(path.begin(), path.end(), [&branch](const model::CallSite& site) {
           return graph::same_line(site, branch.guarded);
         });
}

/// "inside `if rank == 0` (train.py:14)", or "because of `rank == 0` (train.py:14)" if the call
/// comes after an early return.
std::string under(const model::JobModel& job, const Branch& branch) {
  const std::string enclosed = inside(job, branch);
  return enclosed.empty()
             ? fmt::format("because of {} ({})", condition_quote(branch), line_of(branch.where))
             : enclosed;
}

void tell_own_way(const graph::Examination& examination, const Explanation& explanation,
                  Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string statement = source_quote(examination.job, branch.guarded);
  const std::string call = statement.empty() ? "it" : statement;
  finding.summary = fmt::format("{} from {}, {}; {} skipped it", odd_does(examination, explanation),
                                line_of(branch.guarded), under(examination.job, branch),
                                said(parting.rest.ranks));
  finding.fix = fmt::format(
      "Move {} ({}) out of {} ({}) so that every rank runs it, or remove the collective from it.",
      call, line_of(branch.guarded), condition_quote(branch), line_of(branch.where));
  finding.locations.insert(
      finding.locations.begin(),
      location(branch.guarded, parting.odd.ranks,
               fmt::format("{} reached the call from here", said(parting.odd.ranks))));
}

/// "; ranks 1-3 skipped it and are waiting in all_reduce".
std::string others_skipped(const graph::Examination& examination, const Explanation& explanation,
                           std::string_view why) {
  const Side& rest = explanation.parting.rest;
  if (!explanation.parting.odd.calls()) {
    return "; " + rest_waits(examination, explanation);
  }
  const std::string skipped = fmt::format("; {} skipped it{}", said(rest.ranks), why);
  return !rest.calls() ? skipped
                       : fmt::format("{} and {} waiting in {}", skipped, is_or_are(rest.ranks),
                                     rest.operation);
}

/// "all_gather (train.py:16)"; where the block holds a call that leads to it, that call:
/// "`evaluate(model)` (train.py:97), which calls barrier,".
std::string guarded_call(const model::JobModel& job, const Branch& branch, const Side& odd,
                         const std::string& call) {
  const std::string statement = source_quote(job, branch.guarded);
  const bool on_the_way = std::any_of(
      odd.path.begin(), odd.path.end(),
      [&branch](const model::CallSite& site) { return graph::same_line(site, branch.guarded); });
  if (graph::same_line(branch.guarded, odd.site()) || !on_the_way || statement.empty()) {
    return fmt::format("{} ({})", call, line_of(odd.site()));
  }
  return fmt::format("{} ({}), which calls {},", statement, line_of(branch.guarded), call);
}

/// "`if rank == 0` (train.py:14)" of "inside `if rank == 0` (train.py:14)".
std::string block_of(const Branch& branch, const std::string& enclosed) {
  constexpr std::string_view kInside = "inside ";
  return enclosed.starts_with(kInside)
             ? enclosed.substr(kInside.size())
             : fmt::format("{} ({})", condition_quote(branch), line_of(branch.where));
}

void tell_call(const graph::Examination& examination, const Explanation& explanation,
               Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  const std::string enclosed = inside(examination.job, branch);
  const std::string because = fmt::format(" because of {}", condition_quote(branch));
  finding.summary =
      odd_does(examination, explanation) + (enclosed.empty() ? std::string() : " " + enclosed) +
      others_skipped(examination, explanation, enclosed.empty() ? because : std::string());
  const std::string call = named(examination.job, parting.odd, "the call");
  if (model::is_framework_file(branch.where.file)) {
    finding.fix = fmt::format(
        "Make no collective in the code that the framework runs on {} only ({}): move {} ({}) to "
        "code that every rank runs.",
        said(parting.odd.ranks), line_of(branch.where), call, line_of(parting.odd.site()));
    return;
  }
  finding.fix =
      enclosed.empty()
          ? fmt::format(
                "Call {} ({}) on every rank: move it before {} ({}). Keep only printing and "
                "saving after it.",
                call, line_of(parting.odd.site()), condition_quote(branch), line_of(branch.where))
          : fmt::format(
                "Move {} out of {} so that every rank calls it. Keep only printing and saving "
                "inside.",
                guarded_call(examination.job, branch, parting.odd, call),
                block_of(branch, enclosed));
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Branch& branch = *explanation.branch;
  const Parting& parting = explanation.parting;
  if (explanation.dispatch) {
    tell_dispatch(examination, explanation, finding);
    if (!branch.leads_to_ours) {
      put_guarded_call_first(parting, finding);
    }
    return;
  }
  if (came_its_own_way(branch, parting)) {
    tell_own_way(examination, explanation, finding);
  } else if (branch.leads_to_ours) {
    tell_call(examination, explanation, finding);
  } else {
    finding.summary = fmt::format("{} skipped {} because of {} ({}); {} in it",
                                  said(parting.odd.ranks), waiting_call(examination, explanation),
                                  condition_quote(branch), line_of(branch.where),
                                  ranks_do(parting.rest.ranks, "is waiting", "are waiting"));
    finding.fix =
        fmt::format("Move {} ({}) out of {} ({}) so that every rank calls it.",
                    named(examination.job, parting.rest, "the call"), line_of(parting.rest.site()),
                    condition_quote(branch), line_of(branch.where));
    put_guarded_call_first(parting, finding);
    if (const auto half = missed_half(examination.job, parting)) {
      tell_missed_half(*half, explanation, finding);
      return;
    }
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("{} tests the rank and separates {} from {}", condition_quote(branch),
                           said(parting.odd.ranks), said(parting.rest.ranks))});
}

Findings detect(const graph::Examination& examination) {
  Findings findings =
      findings_with(examination, Cause::kRankConditional, "rank-conditional-collective",
                    [&](const Explanation& explanation, Finding& finding) {
                      tell(examination, explanation, finding);
                    });
  return findings.empty() ? unseen_findings(examination, "rank-conditional-collective") : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs at the end of an evaluation, at a checkpoint or when something is logged. One rank, usually 0, is in a
collective; the others are in the next one, in backward, or already in the next epoch. GPUs show 100 %.

Why: a collective finishes only when every rank of the group has called it. Here it is called under a condition that tests the rank:
`if rank == 0`, `is_main_process`, `@rank_zero_only`. Hidden collectives count too: metric.compute(), self.log(sync_dist=True),
state_dict() of sharded models, the forward of DistributedDataParallel with buffers. Libraries pair collectives by order and not by
name, so the extra call can pair with the next call of the others, and the hang then shows at a later line that is correct.

How ddpdoctor knows: it finds the lowest sequence number at which ranks call different operations or call from different lines, and a
condition in your source that tests the rank and decides which ranks make the call. The name of the variable does not matter:
ddpdoctor follows its value through variables, functions, attributes, decorators and files to `dist.get_rank()`, `os.environ["RANK"]`
or `is_main_process`.

The condition may choose a function instead of guarding the call: a class for each role, one more callback on rank 0, a method that is
replaced. Then one line, `self.strategy.step()`, runs different functions. The report names these functions and the line that chose
between them.

Fix: call the collective on every rank, and keep only the printing under the condition.

    -    if rank == 0:
    -        loss = gather_loss(loss)      # a collective
    -        print(loss)
    +    loss = gather_loss(loss)
    +    if rank == 0:
    +        print(loss)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {
    .kind = "rank-conditional-collective",
    .title = "Only some ranks call a collective, because a condition tests the rank",
    .explanation = kExplanation,
    .detect = detect};

}  // namespace ddpdoctor::detectors::rank_conditional_collective
