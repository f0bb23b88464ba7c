// SPDX-License-Identifier: Apache-2.0
// A loop with more batches on one rank is harmless if its steps make no calls, if a test ends it
// early, skips a step or compensates afterwards, if Join takes part for finished ranks, or if only
// every n-th step reduces. So the source must show a direct path from the loop to the call, and
// none of these constructs in any file on that path.
#include "collector/detectors/partings/uneven_ahead.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/code.h"
#include "collector/program/questions/contexts.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/exits.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Examination;
using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

// A rank runs ahead of the others by at most what fits into a step; more is another epoch.
constexpr std::int64_t kApart = 2;

/// The loops that one rank is in, outermost first.
struct RankInLoop {
  model::Rank rank = 0;
  std::vector<LoopSeen> loops;
};

/// One loop on all ranks.
struct SharedLoop {
  model::CallSite where;
  std::string header;
  std::vector<std::pair<model::Rank, model::Iteration>> steps;  // rank and its iteration

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> extent() const {
    std::pair<std::int64_t, std::int64_t> out{INT64_MAX, 0};
    for (const auto& [rank, over] : steps) {
      out = {std::min(out.first, *over.total()), std::max(out.second, *over.total())};
    }
    return out;
  }
  [[nodiscard]] model::RankSet ranks_with(std::int64_t total) const {
    model::RankSet out;
    for (const auto& [rank, over] : steps) {
      if (over.total() == total) {
        out.insert(rank);
      }
    }
    return out;
  }
};

/// Every existing rank, each in some loop; empty if one is in none.
std::vector<RankInLoop> ranks_in_loops(const model::JobModel& job, const model::Observation& look) {
  std::map<model::Rank, RankInLoop> ranks;
  for (const model::Process& process : look.processes) {
    if (process.role != model::Role::kRank || !process.rank) {
      continue;
    }
    const model::Thread* thread = model::main_thread(process);
    RankInLoop one{.rank = *process.rank,
                   .loops = thread == nullptr ? std::vector<LoopSeen>{} : loops_seen(job, *thread)};
    if (one.loops.empty() || process.exit || !ranks.emplace(one.rank, std::move(one)).second) {
      return {};
    }
  }
  std::vector<RankInLoop> out;
  for (auto& [rank, one] : ranks) {
    out.push_back(std::move(one));
  }
  return out;
}

/// Epochs: the same one on all ranks, with the same number remaining.
bool are_same_epoch(const LoopSeen& a, const LoopSeen& b) {
  return a.where == b.where && a.over.over == "range" && b.over.over == "range" &&
         a.over.done == b.over.done && a.over.left == b.over.left;
}

/// The loop at this depth, if all ranks are in it at about the same step and all lengths are known.
std::optional<SharedLoop> shared_at(const std::vector<RankInLoop>& ranks, std::size_t depth) {
  const LoopSeen& first = ranks.front().loops[depth];
  SharedLoop out{.where = first.where, .header = first.header, .steps = {}};
  std::int64_t low = INT64_MAX;
  std::int64_t high = 0;
  for (const RankInLoop& one : ranks) {
    if (one.loops.size() <= depth || one.loops[depth].where != first.where ||
        !std::equal(one.loops.begin(), one.loops.begin() + static_cast<std::ptrdiff_t>(depth),
                    ranks.front().loops.begin(), are_same_epoch)) {
      return std::nullopt;
    }
    const model::Iteration& over = one.loops[depth].over;
    if (!over.total() || over.loose) {
      return std::nullopt;
    }
    low = std::min(low, *over.done);
    high = std::max(high, *over.done);
    out.steps.emplace_back(one.rank, over);
  }
  return high - low <= kApart ? std::optional(std::move(out)) : std::nullopt;
}

/// The innermost loop with different lengths; nothing if all comparable ones are equal.
std::optional<SharedLoop> uneven_loop(const std::vector<RankInLoop>& ranks) {
  if (ranks.size() < 2) {
    return std::nullopt;
  }
  for (std::size_t depth = ranks.front().loops.size(); depth-- > 0;) {
    auto loop = shared_at(ranks, depth);
    if (loop && loop->extent().first != loop->extent().second) {
      return loop;
    }
  }
  return std::nullopt;
}

bool are_as_long(const SharedLoop& a, const SharedLoop& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && one.second.total() == other.second.total();
                    });
}

/// The same loop in the newest snapshot in which all ranks are in one. No thread is stopped for a
/// snapshot: a DataLoader between two of its own statements seems one step shorter than it is. So a
/// second snapshot must confirm it, and none may contradict it.
std::optional<SharedLoop> uneven_in_all_looks(const model::JobModel& job) {
  std::optional<SharedLoop> found;
  bool confirmed = false;
  for (auto look = job.observations.rbegin(); look != job.observations.rend(); ++look) {
    const std::vector<RankInLoop> ranks = ranks_in_loops(job, *look);
    if (!found) {
      found = uneven_loop(ranks);
      continue;
    }
    for (std::size_t depth = 0; ranks.size() > 1 && depth < ranks.front().loops.size(); ++depth) {
      const auto again = shared_at(ranks, depth);
      if (!again || again->where != found->where) {
        continue;
      }
      if (!are_as_long(*again, *found)) {
        return std::nullopt;
      }
      confirmed = true;
    }
  }
  return confirmed ? found : std::nullopt;
}

const Lines* source_of(const model::JobModel& job, const model::CallSite& site) {
  const auto found = job.sources.find(site.file);
  return found == job.sources.end() ? nullptr : &found->second;
}

/// No decision controls whether this line is reached in an iteration of `loop` (0: a call of the
/// function).
bool is_reached_always(const Lines& lines, int line, int loop) {
  for (const Block& block : program::enclosing(lines, line)) {
    if (block.line == loop) {
      break;
    }
    if (block.kind == BlockKind::kFunction && loop == 0) {
      break;
    }
    if (block.kind != BlockKind::kWith) {
      return false;
    }
  }
  const std::vector<Block> deciding = program::deciding_branches(lines, line);
  return std::none_of(deciding.begin(), deciding.end(),
                      [loop](const Block& block) { return block.line > loop; });
}

/// Index of the outermost frame of a path inside the loop; path.size() if there is none.
std::size_t frame_in_loop(const model::JobModel& job, const SharedLoop& loop, const Path& path) {
  for (std::size_t i = path.size(); i-- > 0;) {
    const Lines* lines = source_of(job, path[i]);
    if (lines == nullptr || path[i].file != loop.where.file) {
      continue;
    }
    const std::vector<Block> around = program::enclosing(*lines, path[i].line);
    if (std::any_of(around.begin(), around.end(),
                    [&loop](const Block& block) { return block.line == loop.where.line; })) {
      return i;
    }
  }
  return path.size();
}

/// Each iteration of the loop makes the call at the end of this path exactly once.
bool every_step_calls(const model::JobModel& job, const SharedLoop& loop, const Path& path) {
  const std::size_t inside = frame_in_loop(job, loop, path);
  if (inside == path.size()) {
    return false;
  }
  for (std::size_t i = 0; i <= inside; ++i) {
    const Lines* lines = source_of(job, path[i]);
    if (lines == nullptr ||
        !is_reached_always(*lines, path[i].line, i == inside ? loop.where.line : 0)) {
      return false;
    }
  }
  return true;
}

/// Early exits that may make the lengths equal after all; a test for a bad loss does not count.
bool may_end_early(const model::JobModel& job, const Lines& lines, const SharedLoop& loop,
                   int inside) {
  const std::vector<Block> exits = program::loop_exits(lines, inside);
  return std::any_of(exits.begin(), exits.end(), [&](const Block& exit) {
    return exit.line > loop.where.line && !reads_own(job, lines, exit);
  });
}

/// `while …`, `for … in range(n)`.
bool repeats_by_number(program::Node loop) {
  if (loop.is(program::NodeKind::kWhile)) {
    return true;
  }
  const program::Node over = loop.is(program::NodeKind::kFor)
                                 ? program::without_parentheses(loop.field(program::Field::kRight))
                                 : program::Node();
  return over.is(program::NodeKind::kCall) &&
         over.field(program::Field::kFunction).text() == "range";
}

/// A loop after this one, in the same suite, that may take part for finished ranks.
bool may_even_out(const Lines& lines, const SharedLoop& loop) {
  const program::Code code(lines);
  const std::size_t at = code.header_at(loop.where.line);
  for (program::Node next = at == program::kNone ? program::Node() : code[at].node.next_sibling();
       next; next = next.next_sibling()) {
    if (repeats_by_number(next)) {
      return true;
    }
  }
  return false;
}

/// All ranks of the loop are in this group.
bool joins_all(const Examination& examination, const SharedLoop& loop, std::string_view id) {
  const model::ProcessGroup* group = id.empty() ? nullptr : model::group(examination.job, id);
  if (group == nullptr || group->ranks.empty()) {
    return examination.job.groups.size() <= 1;
  }
  const model::RankSet members(group->ranks);
  return std::all_of(loop.steps.begin(), loop.steps.end(),
                     [&members](const auto& step) { return members.contains(step.first); });
}

/// The path to the call of each step, innermost first; empty if none was seen.
Path path_of_step(const Examination& examination, const SharedLoop& loop) {
  const auto fits = [&](const Path& path, std::string_view group) {
    return joins_all(examination, loop, group) && every_step_calls(examination.job, loop, path);
  };
  for (const graph::Standing& standing : examination.standings) {
    const bool joins =
        standing.activity == Activity::kCollective || standing.activity == Activity::kDdpBackward;
    if (joins && fits(standing.callers, standing.call ? standing.call->group : "")) {
      return standing.callers;
    }
  }
  constexpr std::size_t kEnough = 200;  // newest calls of each rank
  std::set<std::pair<std::string, Path>> known;
  for (const auto& [rank, over] : loop.steps) {
    for (const graph::Calls* calls : examination.history.lanes(rank)) {
      for (std::size_t i = calls->size(); i-- > 0 && calls->size() - i <= kEnough;) {
        Path path = graph::callers_of(*(*calls)[i]);
        if (!known.emplace((*calls)[i]->group, path).second) {
          continue;
        }
        if (fits(path, (*calls)[i]->group)) {
          return path;
        }
      }
    }
  }
  return {};
}

/// Nothing in the source handles a different number of steps.
bool is_plain(const model::JobModel& job, const SharedLoop& loop, const Path& path) {
  const Lines* lines = source_of(job, loop.where);
  const std::size_t inside = frame_in_loop(job, loop, path);
  if (lines == nullptr || inside == path.size() ||
      may_end_early(job, *lines, loop, path[inside].line) || may_even_out(*lines, loop)) {
    return false;
  }
  return std::none_of(path.begin(), path.end(), [&job](const model::CallSite& site) {
    const Lines* each = source_of(job, site);
    return each != nullptr && program::has_unlike_steps(*each);
  });
}

/// Ranks whose frame was not read: its iterator was.
void add_iterations(const model::JobModel& job, const SharedLoop& loop, Location& place) {
  const auto read = model::values_at(job, loop.where.file, loop.where.line);
  for (const auto& [rank, over] : loop.steps) {
    const bool is_known = std::any_of(read.begin(), read.end(), [at = rank](const auto& group) {
      return group.ranks.contains(at) && !group.value.empty();
    });
    if (!is_known) {
      place.outcomes.push_back(
          {.ranks = {rank},
           .expression = read.empty() ? loop.header : read.front().expression,
           .value = fmt::format("iteration {} of {}", *over.done, *over.total()),
           .reason = "counted by its iterator"});
    }
  }
}

}  // namespace

std::optional<Finding> uneven_ahead(const Examination& examination) {
  const model::JobModel& job = examination.job;
  if (job.ended || job.progress != model::Progress::kMoving || model::are_several_jobs(job)) {
    return std::nullopt;
  }
  const auto loop = uneven_in_all_looks(job);
  const Path path = loop ? path_of_step(examination, *loop) : Path{};
  if (path.empty() || !is_plain(job, *loop, path)) {
    return std::nullopt;
  }
  const auto [low, high] = loop->extent();
  const model::RankSet longest = loop->ranks_with(high);
  const model::RankSet shortest = loop->ranks_with(low);
  Finding finding;
  finding.kind = "uneven-inputs";
  finding.ahead = true;
  finding.confidence = Confidence::kLikely;
  for (const auto& [rank, over] : loop->steps) {
    if (over.total() != high) {
      finding.culprits.insert(rank);
    }
  }
  finding.summary = fmt::format(
      "{} {} {} steps in `{}` ({}), but {} {} {}; the longer ones will hang in the last step",
      said(shortest), has_or_have(shortest), low, loop->header, line_of(loop->where), said(longest),
      has_or_have(longest), high);
  finding.fix = kEqualSteps;
  finding.locations.push_back(
      location(loop->where, finding.culprits, "this loop will end earlier here"));
  finding.locations.push_back(location(path.front(), {}, "each step calls a collective here"));
  add_steps(loop->steps, finding);
  add_iterations(job, *loop, finding.locations.front());
  return finding;
}

}  // namespace ddpdoctor::detectors
