// SPDX-License-Identifier: Apache-2.0
// All ranks make the same collectives in a loop, but each in its own order: the loop iterates over
// a set of strings, a directory listing, or a sort by hash(). Only the source proves it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/item_order.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/blocked_call.h"
#include "collector/graph/device_waits.h"
#include "collector/graph/launched_call.h"
#include "collector/model/questions.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/order.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors::order_from_set {
namespace {

using graph::Disagreement;
using program::OwnOrder;

constexpr std::size_t kLongest = 60;  // characters of a quoted expression

/// The loop that both paths go through, and its function.
struct SharedLoop {
  program::LoopInOwnOrder loop;
  model::CallSite header;
};

/// Every rank hashes strings in the same way: PYTHONHASHSEED is one number on all of them.
bool hash_alike(const model::JobModel& job) {
  std::set<std::string> seeds;
  for (const model::Rank rank : model::ranks_seen(job)) {
    const model::Process* process = model::rank_process(job, rank);
    if (process == nullptr) {
      return false;
    }
    const auto seed = process->environment.find("PYTHONHASHSEED");
    if (seed == process->environment.end()) {
      return false;
    }
    seeds.insert(seed->second);
  }
  return seeds.size() == 1 && *seeds.begin() != "random" && !seeds.begin()->empty();
}

bool is_own_order(const model::JobModel& job, OwnOrder order) {
  const bool by_hash = order == OwnOrder::kSet || order == OwnOrder::kHash;
  return order != OwnOrder::kFixed && !(by_hash && hash_alike(job));
}

/// A loop over batches, or a `while`, around both lines: an outer loop is another step.
bool steps_around(const model::JobModel& job, const model::CallSite& site) {
  const auto& lines = lines_of(job, site.file);
  for (const program::Block& block : program::enclosing(lines, site.line)) {
    const bool steps =
        block.kind == program::BlockKind::kWhile ||
        (block.kind == program::BlockKind::kFor &&
         program::items_of(lines, block.line, job.sources) == program::Items::kBatches);
    if (steps) {
      return true;
    }
  }
  return false;
}

/// The loop around a frame; parameters are followed to the frames around it.
std::optional<program::LoopInOwnOrder> loop_at(const model::JobModel& job, const Path& path,
                                               std::size_t at) {
  program::CallString callers;
  for (std::size_t i = at; i < path.size(); ++i) {
    callers.push_back(
        {.text = &lines_of(job, path[i].file), .function = path[i].function, .line = path[i].line});
  }
  return program::loop_in_own_order(
      {.text = &lines_of(job, path[at].file), .line = path[at].line, .callers = &callers},
      job.sources);
}

/// From the line where the two paths diverge, or the innermost common line, outwards.
std::optional<SharedLoop> shared_loop(const model::JobModel& job, const Path& a, const Path& b) {
  for (std::size_t i = 0, common = std::min(a.size(), b.size()); i < common; ++i) {
    const model::CallSite& ours = a[a.size() - common + i];
    const model::CallSite& theirs = b[b.size() - common + i];
    if (ours.file != theirs.file || ours.function != theirs.function) {
      continue;
    }
    const auto loop = loop_at(job, a, a.size() - common + i);
    const auto other = ours.line == theirs.line ? loop : loop_at(job, b, b.size() - common + i);
    if (loop && other && loop->line == other->line && is_own_order(job, loop->order)) {
      model::CallSite header = ours;
      header.line = loop->line;
      return SharedLoop{.loop = *loop, .header = header};
    }
    if (steps_around(job, ours)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string fix_for(const SharedLoop& shared) {
  const std::string over = base::elide(shared.loop.over, kLongest);
  const std::string where = place(shared.header);
  switch (shared.loop.order) {
    case OwnOrder::kSet:
    case OwnOrder::kFixed:
      return fmt::format(
          "Write `sorted({})` in {}: a set of strings has a different order in each process.", over,
          where);
    case OwnOrder::kDirectory:
      return fmt::format("Write `sorted({})` in {}: each file system lists files in its own order.",
                         over, where);
    case OwnOrder::kHash:
      return fmt::format(
          "Sort `{}` ({}) by the value itself or by hashlib: hash() and id() differ between "
          "processes.",
          over, where);
    case OwnOrder::kRandom:
      return fmt::format(
          "Draw the order of `{}` ({}) on rank 0 and broadcast it; or use the same seed on every "
          "rank.",
          over, where);
  }
  return {};
}

void tell(const SharedLoop& shared, Finding& finding) {
  finding.kind = "order-from-set";
  finding.summary = fmt::format(
      "{} call the collectives of one loop in different order: `{}` ({}) has the order of {}",
      said(finding.culprits), base::elide(shared.loop.over, kLongest), place(shared.header),
      program::name_of(shared.loop.order));
  finding.fix = fix_for(shared);
  finding.locations.insert(finding.locations.begin(),
                           location(shared.header, {}, "has a different order on each rank"));
  if (!shared.loop.chain.empty() && shared.loop.chain.back().line != shared.header.line) {
    const program::OriginStep& end = shared.loop.chain.back();
    const std::string& file = end.file.empty() ? shared.header.file : end.file;
    finding.evidence.push_back({.rank = std::nullopt,
                                .text = fmt::format("`{}` comes from `{}` ({}:{})",
                                                    base::elide(shared.loop.over, kLongest),
                                                    end.text, base::file_name(file), end.line)});
  }
  finding.details["order_of"] = std::string(program::name_of(shared.loop.order));
}

/// Two groups, one loop: each rank has reached another element.
std::optional<Finding> from_groups(const graph::Examination& examination) {
  const std::vector<Explanation> all = explanations(examination, Cause::kOrder);
  if (all.empty()) {
    return std::nullopt;
  }
  std::optional<SharedLoop> shared;
  Finding finding = finding_of(examination, all.front(), 1);  // the source is a fact of its own
  for (const Explanation& one : all) {
    const auto loop = shared_loop(examination.job, one.parting.odd.path, one.parting.rest.path);
    if (!loop || (shared && shared->header != loop->header)) {
      return std::nullopt;
    }
    shared = loop;
    finding.culprits = finding.culprits.united(one.parting.odd.ranks);
    finding.culprits = finding.culprits.united(one.parting.rest.ranks);
  }
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  tell(*shared, finding);
  return finding;
}

/// Its host has run ahead of earlier calls of the loop; with gloo, every call is the only open one.
bool spins_in_a_call(const model::JobModel& job, const graph::Standing& standing) {
  return standing.activity == graph::Activity::kCollective && standing.process != nullptr &&
         graph::is_on_gpu(job, *standing.process);
}

/// Without records: all ranks wait at one line of such a loop, for their GPUs or in its call.
std::optional<Finding> from_one_line(const graph::Examination& examination) {
  const graph::Standing* standing = common_standing(examination);
  const bool waits = standing != nullptr && (standing->activity == graph::Activity::kGpu ||
                                             spins_in_a_call(examination.job, *standing));
  const auto shared =
      !waits ? std::nullopt : shared_loop(examination.job, standing->callers, standing->callers);
  if (!shared) {
    return std::nullopt;
  }
  Finding finding;
  finding.confidence = Confidence::kPossible;
  finding.waiting = waiting_ranks(examination);
  const auto loop = std::find_if(
      standing->callers.begin(), standing->callers.end(), [&shared](const model::CallSite& site) {
        return site.file == shared->header.file && site.function == shared->header.function;
      });
  const auto launched =
      graph::launched_last(examination.job, standing->callers,
                           static_cast<std::size_t>(loop - standing->callers.begin()) + 1, true);
  if (launched) {
    finding.locations.push_back(
        location(launched->callers.front(), finding.waiting, "called in each iteration"));
  }
  tell(*shared, finding);
  finding.summary = fmt::format(
      "{} may call the collectives of one loop in different order: `{}` ({}) has the order of {}",
      said(finding.waiting), base::elide(shared->loop.over, kLongest), place(shared->header),
      program::name_of(shared->loop.order));
  return finding;
}

bool is_of_arguments(Disagreement about) {
  switch (about) {
    case Disagreement::kOperation:
    case Disagreement::kShape:
    case Disagreement::kDtype:
    case Disagreement::kReduceOp:
    case Disagreement::kRoot:
    case Disagreement::kSplits:
      return true;
    case Disagreement::kMissing:
    case Disagreement::kCallSite:
      return false;
  }
  return false;
}

/// One group: the n-th call of the loop has another size, root or operation.
std::optional<Finding> from_records(const graph::Examination& examination,
                                    const graph::GroupView& view) {
  for (const graph::Divergence& divergence : view.disagreements) {
    if (!is_of_arguments(divergence.about) || divergence.calls.size() < 2 ||
        !divergence.calls[0].call || !divergence.calls[1].call) {
      continue;
    }
    const auto shared = shared_loop(examination.job, graph::callers_of(*divergence.calls[0].call),
                                    graph::callers_of(*divergence.calls[1].call));
    if (!shared) {
      continue;
    }
    Finding finding;
    bool stands = false;
    for (const graph::DivergentCall& side : divergence.calls) {
      finding.culprits = finding.culprits.united(side.ranks);
      for (const model::Rank rank : side.ranks) {
        const graph::Standing* standing = examination.standing(rank);
        stands = stands || (standing != nullptr && standing->thread != nullptr && standing->call &&
                            standing->call->sequence == divergence.sequence);
      }
      if (side.call) {
        finding.evidence.push_back(
            {.rank = side.ranks.front(),
             .text = fmt::format("{} called {}{}{}", said(side.ranks),
                                 call_name(examination.job, *side.call),
                                 side.call->shape ? " with " + shape_text(*side.call->shape) : "",
                                 side.call->root ? fmt::format(", root rank {}", *side.call->root)
                                                 : std::string())});
      }
    }
    finding.confidence = confidence_of(stands || examination.job.ended ? 2 : 1);
    finding.waiting = waiting_ranks(examination).minus(finding.culprits);
    finding.locations.push_back(location(divergence.calls[0].call->call_site, finding.culprits,
                                         "called in each iteration"));
    tell(*shared, finding);
    return finding;
  }
  return std::nullopt;
}

/// The arguments of a blocked call, as far as its stack shows them. A communicator being created
/// has no records: its group comes from the frames.
std::string given_to(const model::JobModel& job, const graph::Standing& standing) {
  const graph::BlockedCall& call = *standing.call;
  const auto in_frames = graph::call_in_frames(job, standing.thread->frames);
  const bool known = in_frames && !in_frames->group.empty();
  return fmt::format("{} {} {} {} {}", call.operation, known ? in_frames->group : call.group,
                     call.root ? std::to_string(*call.root) : "", call.dtype,
                     call.shape ? shape_text(*call.shape) : "");
}

/// In a collective, or in the creation of its communicator.
bool is_in_collective(const graph::Standing& standing) {
  return standing.thread != nullptr && standing.call && !standing.call->operation.empty() &&
         !standing.callers.empty() &&
         (standing.activity == graph::Activity::kCollective ||
          standing.activity == graph::Activity::kRendezvous ||
          standing.activity == graph::Activity::kStore);
}

/// From stacks alone: ranks wait at one line of one loop with different arguments.
std::optional<Finding> from_stacks(const graph::Examination& examination) {
  std::map<model::Rank, std::string> given;
  std::optional<SharedLoop> shared;
  const graph::Standing* first = nullptr;
  for (const graph::Standing& standing : examination.standings) {
    if (!is_in_collective(standing)) {
      continue;
    }
    first = first == nullptr ? &standing : first;
    const auto loop = shared_loop(examination.job, first->callers, standing.callers);
    if (!loop || (shared && shared->header != loop->header)) {
      return std::nullopt;
    }
    shared = loop;
    given[standing.rank] = given_to(examination.job, standing);
  }
  const std::vector<Camp> all = camps(given);
  if (!shared || all.size() < 2 || !examination.still() || !unobserved_ranks(examination).empty()) {
    return std::nullopt;
  }
  Finding finding;
  finding.confidence = Confidence::kCertain;  // the arguments of the calls, and the source
  for (const Camp& camp : all) {
    finding.culprits = finding.culprits.united(camp.ranks);
  }
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  add_whereabouts(finding, examination, finding.culprits);
  finding.locations.push_back(location(first->user, finding.culprits, "called in each iteration"));
  tell(*shared, finding);
  return finding;
}

/// The iterators on the ranks show a set, whatever the source shows of it.
std::optional<Finding> from_iterators(const graph::Examination& examination) {
  const auto order = item_order(examination);
  if (!order || order->container != "set") {
    return std::nullopt;
  }
  Finding finding = finding_of_items(examination, *order);
  finding.kind = "order-from-set";
  finding.details["order_of"] = std::string(program::name_of(OwnOrder::kSet));
  return finding;
}

Findings detect(const graph::Examination& examination) {
  if (auto finding = from_groups(examination)) {
    return {std::move(*finding)};
  }
  for (const graph::GroupView& view : examination.groups) {
    if (auto finding = from_records(examination, view)) {
      return {std::move(*finding)};
    }
  }
  if (auto finding = from_stacks(examination)) {
    return {std::move(*finding)};
  }
  if (auto finding = from_iterators(examination)) {
    return {std::move(*finding)};
  }
  if (auto finding = from_one_line(examination)) {
    return {std::move(*finding)};
  }
  return {};
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs in a loop that calls one collective for each name; sometimes it runs, sometimes not. All ranks are
on one line, in calls of different groups, sizes or roots. With equal sizes nothing hangs, but the sums are wrong.

Why: the loop goes over a set (or a directory listing). Each Python process hashes strings with its own seed, so every rank iterates
over the same names in a different order, and the n-th call of one rank pairs with the n-th call of another rank, which is for a
different name.

How ddpdoctor knows: the ranks are in different calls of one loop, and your source shows that the loop iterates over a set, a
directory listing, a sort by hash() or a random choice, which is neither sorted afterwards nor broadcast from one rank. Without that
proof it is reported as collective-order, mismatched-shape or mismatched-root. If PYTHONHASHSEED has the same number on all ranks, a
set is ruled out.

Fix: use one order on all ranks.

    -    for name in {"loss", "accuracy", *extra}:
    +    for name in sorted({"loss", "accuracy", *extra}):
             dist.all_reduce(metrics[name])
)";

}  // namespace

extern const Detector detector;
const Detector detector = {
    .kind = "order-from-set",
    .title = "The order of collectives comes from a set, a listing or a hash",
    .explanation = kExplanation,
    .detect = detect,
    .specificity = kMechanism + 1};  // explains why two groups are used in different order

}  // namespace ddpdoctor::detectors::order_from_set
