// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/item_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/calls_at.h"
#include "collector/detectors/partings/cause.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/names.h"
#include "collector/program/syntax/decisions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Decision;
using program::DecisionKind;
using program::Field;
using program::Node;
using program::NodeKind;

using Names = std::vector<std::string_view>;

constexpr std::size_t kLongestQuoted = 60;  // characters of an expression

/// The decision that a loop's header is: of a `for` statement or of a comprehension.
std::optional<Decision> header_at(const program::SourceText& lines, int line) {
  const program::SourceIndex& index = program::index_of(lines);
  if (index.empty()) {
    return std::nullopt;
  }
  for (Decision& each : program::decisions_of(index, index.function_at(line))) {
    if (each.line == line &&
        (each.kind == DecisionKind::kFor || each.kind == DecisionKind::kIterate)) {
      return std::move(each);
    }
  }
  return std::nullopt;
}

Names names_in(Node expression) {
  Names out;
  for (const program::NameChain& chain : program::name_chains(expression)) {
    out.push_back(chain.words.front());
  }
  return out;
}

bool mentions(Node expression, const Names& names) {
  const Names used = names_in(expression);
  return std::any_of(used.begin(), used.end(), [&names](std::string_view one) {
    return std::find(names.begin(), names.end(), one) != names.end();
  });
}

/// `table[name]`, `getattr(self, name)`, `table.get(name)`: part of it is looked up by these names.
bool looks_up(Node expression, const Names& names) {
  if (!expression) {
    return false;
  }
  if (expression.is(NodeKind::kSubscript)) {
    const std::vector<Node> keys = expression.fields(Field::kSubscript);
    if (std::any_of(keys.begin(), keys.end(), [&](Node key) { return mentions(key, names); })) {
      return true;
    }
  }
  if (expression.is(NodeKind::kCall)) {
    const std::string_view called = program::last_name(expression.field(Field::kFunction).text());
    if ((called == "getattr" || called == "get" || called == "pop") &&
        mentions(expression.field(Field::kArguments), names)) {
      return true;
    }
  }
  return std::ranges::any_of(expression.children(),
                             [&names](Node child) { return looks_up(child, names); });
}

/// A condition between the loop and this line of its function tests the item.
bool tests_the_item(const program::SourceText& lines, const Decision& header, int line,
                    const Names& names) {
  const program::SourceIndex& index = program::index_of(lines);
  const auto decisions = program::decisions_of(index, index.function_at(line));
  const Node body = header.owner;
  const auto branches = program::deciding_branches(lines, line);
  return std::any_of(branches.begin(), branches.end(), [&](const program::Block& block) {
    return !is_loop(block) && block.line > body.line() && block.line <= body.last_line() &&
           std::any_of(decisions.begin(), decisions.end(), [&](const Decision& one) {
             return one.line == block.line && mentions(one.condition, names);
           });
  });
}

/// The item of the loop in which this frame is chooses what the frame calls.
bool chooses(const model::JobModel& job, const Path& path, std::size_t at, const Decision& header) {
  const program::SourceText& lines = lines_of(job, path[at].file);
  const Names names = names_in(header.owner.field(Field::kLeft));
  if (tests_the_item(lines, header, path[at].line, names)) {
    return true;
  }
  if (at > 0) {  // what it is given may be data
    const Node call = call_to(job, path[at], path[at - 1]);
    return call && looks_up(call.field(Field::kFunction), names);
  }
  const program::SourceIndex& index = program::index_of(lines);
  const std::size_t statement = index.statement_at(path[at].line);
  return statement != program::kNone &&
         std::ranges::any_of(
             program::calls_within(index.statements()[statement].node), [&](Node call) {
               const Node given = call.field(Field::kArguments);
               return call.line() <= path[at].line && call.last_line() >= path[at].line &&
                      (looks_up(given, names) || (names.size() > 1 && mentions(given, names)));
             });
}

bool is_at(const model::CallSite& site, const LoopSeen& loop) {
  return site.file == loop.where.file && site.function == loop.where.function;
}

/// One of the frames in this loop calls what the item chooses.
bool chooses_there(const model::JobModel& job, const Path& path, const LoopSeen& loop) {
  const auto header = header_at(lines_of(job, loop.where.file), loop.where.line);
  const auto in =
      std::find_if(path.begin(), path.end(), [&](const auto& site) { return is_at(site, loop); });
  return header && in != path.end() &&
         chooses(job, path, static_cast<std::size_t>(in - path.begin()), *header);
}

bool has_other_order(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return a.size() > 1 && a != b && std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

std::vector<LoopSeen> loops_of(const model::JobModel& job, const Side& side) {
  const bool stands = side.standing != nullptr && side.standing->thread != nullptr;
  return stands ? loops_seen(job, *side.standing->thread) : std::vector<LoopSeen>{};
}

/// The items of all ranks that are in the loop.
void add_orders(const graph::Examination& examination, ItemOrder& out) {
  for (const graph::Standing& standing : examination.standings) {
    const auto seen = loop_seen_at(examination.job, standing.rank, out.where);
    if (!seen || seen->over.items.empty()) {
      continue;
    }
    const auto same = std::find_if(out.orders.begin(), out.orders.end(), [&seen](const auto& one) {
      return one.second == seen->over.items;
    });
    if (same == out.orders.end()) {
      out.orders.emplace_back(model::RankSet{standing.rank}, seen->over.items);
    } else {
      same->first.insert(standing.rank);
    }
  }
}

/// "'loss', 'recall', …": the items up to the first one that differs from `other`, and it.
std::string first_items(const std::vector<std::string>& items,
                        const std::vector<std::string>& other) {
  constexpr std::ptrdiff_t kMost = 4;
  const auto differs = std::mismatch(items.begin(), items.end(), other.begin(), other.end()).first;
  const auto end = differs == items.end() ? differs : std::next(differs);
  const auto begin = end - items.begin() > kMost ? end - kMost : items.begin();
  return fmt::format("{}{}{}", begin == items.begin() ? "" : "…, ", fmt::join(begin, end, ", "),
                     end == items.end() ? "" : ", …");
}

/// The innermost loop that two sides are in with the same items in another order.
std::optional<ItemOrder> order_between(const graph::Examination& examination, const Side& one,
                                       const Side& other) {
  const model::JobModel& job = examination.job;
  const std::vector<LoopSeen> ours_in = loops_of(job, one);
  const std::vector<LoopSeen> theirs_in = loops_of(job, other);
  for (auto ours = ours_in.rbegin(); ours != ours_in.rend(); ++ours) {
    const auto theirs =
        std::find_if(theirs_in.rbegin(), theirs_in.rend(),
                     [&ours](const LoopSeen& loop) { return loop.where == ours->where; });
    if (theirs == theirs_in.rend() || !has_other_order(ours->over.items, theirs->over.items) ||
        !chooses_there(job, one.path, *ours) || !chooses_there(job, other.path, *theirs)) {
      continue;
    }
    const auto header = header_at(lines_of(job, ours->where.file), ours->where.line);
    ItemOrder out{.where = ours->where,
                  .over = header->condition.one_line(),
                  .container = ours->over.over,
                  .orders = {}};
    out.sides = {one, other};
    add_orders(examination, out);
    return out.orders.size() > 1 ? std::optional(std::move(out)) : std::nullopt;
  }
  return std::nullopt;
}

/// Ranks that passed other arguments to one call.
Side side_of(const graph::Examination& examination, const graph::DivergentCall& one) {
  Side out{.ranks = one.ranks, .operation = {}, .path = {}};
  out.standing = examination.standing(one.ranks.front());
  if (one.call) {
    out.operation = one.call->operation;
    out.path = graph::callers_of(*one.call);
    out.call = &*one.call;
  }
  return out;
}

}  // namespace

std::optional<ItemOrder> item_order(const graph::Examination& examination) {
  for (const Explanation& one : explanations(examination)) {
    if (auto found = order_between(examination, one.parting.odd, one.parting.rest)) {
      return found;
    }
  }
  for (const graph::GroupView& view : examination.groups) {
    for (const graph::Divergence& divergence : view.disagreements) {
      const auto& calls = divergence.calls;
      auto found = calls.size() < 2 ? std::nullopt
                                    : order_between(examination, side_of(examination, calls[0]),
                                                    side_of(examination, calls[1]));
      if (found) {
        return found;
      }
    }
  }
  return std::nullopt;
}

Finding finding_of_items(const graph::Examination& examination, const ItemOrder& order) {
  const auto& [ranks, items] = order.orders[0];
  const auto& [others, their_items] = order.orders[1];
  const std::string first = first_items(items, their_items);
  const std::string second = first_items(their_items, items);
  const std::string over = base::elide(order.over, kLongestQuoted);
  Finding finding;
  finding.confidence = examination.still() ? Confidence::kCertain : Confidence::kLikely;
  for (const auto& [in_order, their] : order.orders) {
    finding.culprits = finding.culprits.united(in_order);
  }
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary = fmt::format("{} go over `{}` ({}) in different order: {} on {}, {} on {}",
                                said(finding.culprits), over, place(order.where), first,
                                said(ranks), second, said(others));
  Location loop = location(order.where, {}, "has a different order on each rank");
  loop.outcomes = {
      {.ranks = ranks, .expression = order.over, .value = first, .reason = "in the loop"},
      {.ranks = others, .expression = order.over, .value = second, .reason = "in the loop"}};
  finding.locations.push_back(std::move(loop));
  for (const Side& side : order.sides) {
    finding.locations.push_back(
        location(side.site(), side.ranks,
                 fmt::format("{} here, in {}", ranks_do(side.ranks, "is", "are"), side.operation)));
    if (side.call != nullptr) {
      finding.evidence.push_back(
          {.rank = side.ranks.front(),
           .text = fmt::format("{} called {} (recorded calls)", said(side.ranks),
                               call_name(examination.job, *side.call))});
    }
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("all have the same {} items; the iterators of the loop show their order",
                           items.size())});
  finding.fix = fmt::format("Loop over `sorted({})` ({}), or over one list that rank 0 broadcasts.",
                            over, place(order.where));
  return finding;
}

}  // namespace ddpdoctor::detectors
