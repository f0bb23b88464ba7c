// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unseen_decision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/exited_past.h"
#include "collector/detectors/partings/gradient_sync.h"
#include "collector/detectors/partings/uneven_ahead.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/launched_call.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/feedback.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors {
namespace {

using program::DecisionKind;

constexpr std::size_t kMostRivals = 3;  // in addition to the nearest
constexpr std::size_t kLongest = 80;

/// Its test ends a loop that passes to a sharded module what the module returned before.
bool ends_generation(const model::JobModel& job, const Candidate& one) {
  const program::SourceText& lines = lines_of(job, one.call.file);
  if (one.is != Launch::Is::kUnshards || one.where.file != one.call.file ||
      !program::feedback_loop(lines, one.call.line)) {
    return false;
  }
  const auto exits = program::loop_exits(lines, one.call.line);
  return std::any_of(exits.begin(), exits.end(),
                     [&one](const program::Block& exit) { return exit.line == one.where.line; });
}

/// The choice is made for each element of a loop that is as long on every rank.
bool is_for_each_element(const model::JobModel& job, const Candidate& one) {
  const program::SourceText& lines = lines_of(job, one.call.file);
  const auto loop =
      one.where.file == one.call.file ? program::loop_around(lines, one.where.line) : std::nullopt;
  return loop && loop->kind == program::BlockKind::kFor &&
         program::items_of(lines, loop->line, job.sources) == program::Items::kElements;
}

std::string_view kind_of(const model::JobModel& job, const Candidate& one) {
  if (one.is == Launch::Is::kMessage) {
    return "p2p-deadlock";
  }
  if (ends_generation(job, one)) {
    return "generate-length";
  }
  if (one.is == Launch::Is::kNewGroup && !one.is_loop()) {
    return "new-group-subset";
  }
  if (one.is == Launch::Is::kDdpForward && one.source == program::Source::kRank) {
    return "rank0-only-ddp-forward";
  }
  if (one.speaks == Speaks::kOwnBatches || one.of_batches) {
    return "uneven-inputs";
  }
  if (one.kind == DecisionKind::kFor || one.kind == DecisionKind::kIterate ||
      one.kind == DecisionKind::kFilter) {
    return "collective-count";
  }
  if (is_for_each_element(job, one)) {
    return "collective-count";
  }
  return one.source == program::Source::kRank ? "rank-conditional-collective" : "divergent-branch";
}

/// As in the source: "for x in xs", "except OSError", "if x".
std::string quote(const Candidate& one) {
  std::string text = base::elide(one.condition, kLongest);
  if (one.kind == DecisionKind::kExcept) {
    text = one.of_context ? "with " + text : text.empty() ? "except" : "except " + text;
  }
  return fmt::format("`{}` ({})", text, line_of(one.where));
}

/// No choice of the source leads to a call: each rank may decide by itself whether a backward
/// reduces its gradients, or which parameters of a model under DDP have any.
std::optional<UnseenDecision> of_gradients(const model::JobModel& job,
                                           const graph::Standing& standing) {
  UnseenDecision out{.decision = {}, .rivals = {}, .kind = {}, .standing = standing.user};
  Candidate& one = out.decision;
  one.operation = "all_reduce";
  one.inside = false;
  one.skips = true;
  if (const auto sync = own_choice_of_sync(job, standing.callers)) {
    one.where = sync->where;
    one.condition = sync->condition;
    one.call = sync->guarded;
  } else if (const auto branch = graph::wraps_in_ddp(job) ? branch_in_forward(job) : std::nullopt) {
    const auto around = program::enclosing(lines_of(job, branch->file), branch->line + 1);
    if (around.empty() || around.front().line != branch->line) {
      return std::nullopt;
    }
    one.where = *branch;
    one.condition = around.front().condition;
    one.call = *branch;
    out.kind = "unused-parameters";
  }
  one.source = one.where.known()
                   ? origin_of(job, Test{.where = one.where, .condition = one.condition}).source
                   : program::Source::kUniform;
  if (one.source != program::Source::kRank && !program::is_own(one.source)) {
    return std::nullopt;
  }
  out.kind = out.kind.empty() ? kind_of(job, one) : out.kind;
  return out;
}

/// The choice before the line of `standing` for which most speaks.
std::optional<UnseenDecision> decision_behind(const model::JobModel& job,
                                              const graph::Standing& standing,
                                              const model::RankSet& ranks) {
  std::vector<Candidate> all = candidates_behind(job, standing, ranks);
  Speaks most = Speaks::kNothingElse;
  for (const Candidate& one : all) {
    most = std::max(most, one.speaks);
  }
  std::erase_if(all, [most](const Candidate& one) { return one.speaks != most; });
  const std::size_t limit = most == Speaks::kNothingElse ? 1 : 1 + kMostRivals;
  if (all.empty()) {
    return of_gradients(job, standing);
  }
  if (all.size() > limit) {
    return std::nullopt;
  }
  UnseenDecision out{
      .decision = std::move(all.front()), .rivals = {}, .kind = {}, .standing = standing.user};
  out.rivals.assign(std::make_move_iterator(all.begin() + 1), std::make_move_iterator(all.end()));
  out.kind = kind_of(job, out.decision);
  return out;
}

std::optional<UnseenDecision> choose(const graph::Examination& examination) {
  if (const graph::Standing* const standing = common_standing(examination)) {
    return decision_behind(examination.job, *standing, waiting_ranks(examination));
  }
  const auto past = exited_past(examination);
  auto out = past ? decision_behind(examination.job, *past->standing, past->waiting) : std::nullopt;
  if (out && out->decision.speaks >= Speaks::kException) {
    out->left = past->left;
    return out;
  }
  return std::nullopt;
}

/// Of several operands, the one that compares the rank: the others had equal values, or the ranks
/// would not have been separated by their number.
std::optional<bool> holds_on(const Candidate& one, model::Rank rank) {
  std::optional<bool> found;
  if (one.source != program::Source::kRank || one.is_loop() || one.dispatches) {
    return found;
  }
  for (const std::string& operand : program::operands_of(one.condition)) {
    const auto holds = holds_for(operand, rank);
    if (holds && found) {
      return std::nullopt;
    }
    found = holds ? holds : found;
  }
  return found;
}

/// The ranks on the branch that fewer took, if any evidence shows it; if equal, those that called.
model::RankSet odd_ranks(const Candidate& one, const model::RankSet& all) {
  if (!one.differ.empty()) {
    return one.differ;
  }
  model::RankSet called;
  for (const model::Rank rank : all) {
    const auto holds = holds_on(one, rank);
    if (!holds) {
      return {};
    }
    if (*holds == one.inside) {
      called.insert(rank);
    }
  }
  const model::RankSet others = all.minus(called);
  if (one.is == Launch::Is::kNewGroup) {
    return others;  // all must make it
  }
  return others.empty() || called.size() <= others.size() ? called : others;
}

std::string summary_of(const UnseenDecision& unseen, const model::RankSet& odd) {
  const Candidate& one = unseen.decision;
  const std::string who = odd.empty() ? "some ranks" : said(odd);
  const bool forward = one.is == Launch::Is::kDdpForward;
  const std::string call =
      forward
          ? fmt::format("the forward of DistributedDataParallel ({}), which broadcasts buffers,",
                        line_of(one.call))
          : fmt::format("{} ({})", one.operation, line_of(one.call));
  const bool surely = one.speaks == Speaks::kValues;
  if (unseen.kind == "unused-parameters") {
    return fmt::format(
        "{} may not have used some parameters, and reduced no bucket for them: {} depends on {}",
        who, quote(one), program::name_of(one.source));
  }
  if (one.ends_loop) {
    return fmt::format("{} may have ended the loop with {} earlier, at {}", who, call, quote(one));
  }
  if (one.is_loop()) {
    return fmt::format("{} {} a different number of iterations of {}, each with {}", who,
                       surely ? odd.size() == 1 ? "has" : "have" : "may have run", quote(one),
                       call);
  }
  if (one.kind == DecisionKind::kExcept) {
    return fmt::format("{} may have skipped {} after an exception, caught by {}", who, call,
                       quote(one));
  }
  if (surely) {
    return fmt::format("{} differs between ranks, and decides who calls {}", quote(one), call);
  }
  const bool called =
      odd.empty() ? one.inside : holds_on(one, odd.front()).value_or(true) == one.inside;
  return fmt::format(
      "{} may have {} {} {} {}, which depends on {}", who, called ? "called" : "skipped", call,
      called && one.inside ? "under" : "because of", quote(one), program::name_of(one.source));
}

std::string unseen_fix(const UnseenDecision& unseen) {
  const Candidate& one = unseen.decision;
  constexpr std::string_view kRecord =
      "Start the job with `ddpdoctor run -- …` to record which rank called what.";
  const std::string condition = base::elide(one.condition, kLongest);
  if (one.is == Launch::Is::kDdpForward) {
    return fmt::format("Call model.module(...) instead of model(...) ({}), or on every rank. {}",
                       line_of(one.call), kRecord);
  }
  if (one.dispatches) {
    return fmt::format("Call {} on every rank. {}", one.operation, kRecord);
  }
  if (unseen.kind == "unused-parameters") {
    return fmt::format("{} {}", kFindUnused, kRecord);
  }
  if (unseen.kind == "uneven-inputs") {
    return fmt::format("{} {}", kEqualSteps, kRecord);
  }
  if (unseen.kind == "new-group-subset") {
    return fmt::format("Call new_group() on every rank, also on those that are not members. {}",
                       kRecord);
  }
  if (one.is_loop()) {
    return fmt::format("Give `{}` the same length on every rank. {}", condition, kRecord);
  }
  if (one.kind == DecisionKind::kExcept) {
    return fmt::format("Call {} on every rank also after an exception, or end all ranks. {}",
                       one.operation, kRecord);
  }
  if (one.source == program::Source::kEnvironment) {
    return fmt::format("Give every rank the same environment, or broadcast the value of `{}`. {}",
                       condition, kRecord);
  }
  return fmt::format("Call {} on every rank, or all_reduce the value of `{}` first. {}",
                     one.operation, condition, kRecord);
}

/// The line to change comes first, the line where all wait last.
void add_unseen_locations(const UnseenDecision& unseen, Finding& finding) {
  const Candidate& one = unseen.decision;
  const Location call =
      location(one.call, finding.culprits,
               one.inside ? "some ranks may have called this" : "some ranks may have skipped this");
  const Location decision = location(one.where, {}, "may decide which ranks call it");
  const Location here = location(
      unseen.standing, finding.waiting,
      unseen.left.empty()
          ? "all ranks are waiting here"
          : fmt::format("{} {} waiting here", said(finding.waiting), is_or_are(finding.waiting)));
  auto& out = finding.locations;
  if (one.handler.known()) {
    out.push_back(location(one.handler, finding.culprits, "its value comes from here"));
  }
  if (unseen.kind == "uneven-inputs") {  // the position of the ranks that left the loop earlier
    out.push_back(one.after.known() ? location(one.after, finding.culprits, "called after the loop")
                                    : here);
    out.push_back(location(one.where, {}, one.ends_loop ? "the loop ends here" : "this loop"));
    out.push_back(location(one.call, {}, "each iteration calls this"));
  } else if (unseen.kind == "unused-parameters") {
    out.push_back(location(one.where, {}, "this branch may skip parameters"));
  } else if (one.kind == DecisionKind::kExcept ||
             (one.skips && unseen.kind != "generate-length")) {  // the call itself is correct
    out.insert(out.end(), {decision, call});
  } else {
    out.insert(out.end(), {call, decision});
  }
  const bool told = std::any_of(out.begin(), out.end(), [&here](const Location& one_told) {
    return one_told.file == here.file && one_told.line == here.line;
  });
  if (!told) {
    out.push_back(here);
  }
}

/// Why the cause is before the line.
std::string line_of_all(const UnseenDecision& unseen, const model::RankSet& waiting) {
  return unseen.left.empty()
             ? std::string("all ranks wait at one line")
             : fmt::format(
                   "{} ended without an error, so {} passed the line at which {} {} waiting",
                   said(unseen.left), unseen.left.size() == 1 ? "it has" : "they have",
                   said(waiting), is_or_are(waiting));
}

Finding unseen_finding(const graph::Examination& examination, const UnseenDecision& unseen) {
  const Candidate& one = unseen.decision;
  const model::RankSet all = waiting_ranks(examination);
  Finding finding;
  finding.kind = std::string(unseen.kind);
  const bool shown = one.speaks == Speaks::kValues || !unseen.left.empty();
  const bool sure = shown && unseen.rivals.empty() && examination.still();
  finding.confidence = sure ? Confidence::kLikely : Confidence::kPossible;
  finding.culprits = unseen.left.empty() ? odd_ranks(one, all) : unseen.left;
  finding.waiting = all.minus(finding.culprits);
  finding.summary = fmt::format("{}; {}", summary_of(unseen, finding.culprits),
                                line_of_all(unseen, finding.waiting));
  finding.fix = unseen_fix(unseen);
  add_unseen_locations(unseen, finding);
  for (const Candidate& rival : unseen.rivals) {
    finding.evidence.push_back(
        {.rank = {},
         .text = fmt::format("also fits: {}, which decides who calls {} ({})", quote(rival),
                             rival.operation, line_of(rival.call))});
  }
  return finding;
}

}  // namespace

const graph::Standing* common_standing(const graph::Examination& examination) {
  const auto& all = examination.standings;
  const bool known = all.size() > 1 && examination.history.empty() && may_hang(examination) &&
                     !examination.job.ended && waiting_ranks(examination).size() == all.size();
  const bool one_line =
      known && std::all_of(all.begin(), all.end(), [&all](const graph::Standing& one) {
        return one.user.known() && graph::same_line(one.user, all.front().user) &&
               one.thread != nullptr;
      });
  return one_line ? &all.front() : nullptr;
}

const std::optional<UnseenDecision>& unseen_decision(const graph::Examination& examination) {
  return examination.memo.once<std::optional<UnseenDecision>>(
      [&examination] { return choose(examination); });
}

Findings unseen_findings(const graph::Examination& examination, std::string_view kind) {
  const auto& unseen = unseen_decision(examination);
  return unseen && unseen->kind == kind ? Findings{unseen_finding(examination, *unseen)}
                                        : Findings{};
}

}  // namespace ddpdoctor::detectors
