// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/ways_out.h"

#include <algorithm>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exits.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::DataEnd;
using program::Dependence;
using Lines = program::SourceText;

// A sentence with more alternatives is not helpful.
constexpr std::size_t kMostAlternatives = 2;

struct WayOut {
  Block block;
  Dependence on = Dependence::kData;
  bool is_exit = true;  // an `if` in the loop, not the loop's own condition
  program::Source source = program::Source::kUnknown;
  bool unproven = false;
};

int weight(const WayOut& way) {
  return way.on == Dependence::kRank ? 0 : (program::is_own(way.source) ? 1 : 2);
}

// A test of the rank first, then what directly reads data; of two equal ones, that inside the loop.
std::vector<WayOut> ways_out(const model::JobModel& job, const Lines& lines, const Block& loop,
                             int in, const std::optional<DataEnd>& end) {
  std::vector<WayOut> ways;
  for (const Block& exit : program::loop_exits(lines, in)) {
    if (!encloses(lines, loop, exit.line) || (end && end->noticed == exit.line)) {
      continue;
    }
    const program::Origin origin = origin_of(job, lines, exit);
    if (const Dependence on = dependence_of(origin); on != Dependence::kNone) {
      ways.push_back({.block = exit,
                      .on = on,
                      .is_exit = true,
                      .source = origin.source,
                      .unproven = is_unproven(origin)});
    }
  }
  if (loop.kind == BlockKind::kWhile && !(end && end->noticed == loop.line)) {
    const program::Origin origin = origin_of(job, lines, loop);
    if (dependence_of(origin) == Dependence::kData) {
      ways.push_back({.block = loop,
                      .on = Dependence::kData,
                      .is_exit = false,
                      .source = origin.source,
                      .unproven = is_unproven(origin)});
    }
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const WayOut& a, const WayOut& b) { return weight(a) < weight(b); });
  return ways;
}

void add_alternatives(const std::vector<WayOut>& ways, Branch& branch) {
  for (const WayOut& way : ways) {
    const bool told = way.block.line == branch.where.line;
    if (!told && way.on == Dependence::kData && branch.or_else.size() < kMostAlternatives) {
      const Branch other = branch_of(way.block, branch.guarded, way.on, way.is_exit);
      branch.or_else.push_back({.where = other.where, .condition = other.condition});
    }
  }
}

}  // namespace

bool is_flag(std::string_view condition) {
  return condition.find_first_of("<>=(") == std::string_view::npos;
}

std::optional<Branch> way_out_of(const model::JobModel& job, const Lines& lines, const Block& loop,
                                 const model::CallSite& in, const std::optional<DataEnd>& end) {
  const std::vector<WayOut> ways = ways_out(job, lines, loop, in.line, end);
  if (ways.empty()) {
    return std::nullopt;
  }
  const WayOut& first = ways.front();
  Branch branch = branch_of(first.block, in, first.on, first.is_exit);
  branch.unproven = first.unproven;
  if (first.on == Dependence::kData) {
    add_alternatives(ways, branch);
  }
  return branch;
}

void add_other_ways_out(const model::JobModel& job, const Lines& lines, const model::CallSite& in,
                        const model::CallSite& out, Branch& branch) {
  const auto loop = program::loop_around(lines, branch.where.line);
  if (branch.on != Dependence::kData || !loop || !encloses(lines, *loop, in.line) ||
      encloses(lines, *loop, out.line)) {
    return;
  }
  const std::vector<WayOut> ways =
      ways_out(job, lines, *loop, in.line, program::data_end_of(lines, loop->line));
  if (std::any_of(ways.begin(), ways.end(), [&branch](const WayOut& way) {
        return way.is_exit && way.block.line == branch.where.line;
      })) {
    add_alternatives(ways, branch);
  }
}

}  // namespace ddpdoctor::detectors
