// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/loops_seen.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"
#include "collector/program/syntax/decisions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// Headers of the `for` loops around a line, outermost first.
std::vector<Block> loops_around(const Lines& lines, int line) {
  std::vector<Block> out;
  for (Block& block : program::enclosing(lines, line)) {
    if (block.kind == BlockKind::kFor) {
      out.push_back(std::move(block));
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// While items are fetched on the loop's own line, the loop's iterator is already on the stack.
std::optional<Block> loop_on(const Lines& lines, int line) {
  for (auto next = lines.upper_bound(line); next != lines.end() && next->first < line + 40;
       ++next) {
    for (Block& block : program::enclosing(lines, next->first)) {
      if (block.kind == BlockKind::kFor && block.line == line) {
        return std::move(block);
      }
    }
  }
  return std::nullopt;
}

/// The clauses of a comprehension, whose frame has nothing of the loops around it.
void add_clauses(const Lines& lines, const model::Frame& frame, std::vector<LoopSeen>& out) {
  const program::SourceIndex& index = program::index_of(lines);
  const auto clauses = index.empty() ? std::vector<program::Decision>{}
                                     : program::comprehension_at(index, frame.line);
  for (std::size_t i = 0; i < clauses.size() && clauses.size() == frame.loops.size(); ++i) {
    model::CallSite where = model::call_site(frame);
    where.line = clauses[i].line;
    out.push_back(
        {.where = std::move(where), .header = clauses[i].owner.one_line(), .over = frame.loops[i]});
  }
}

}  // namespace

std::vector<LoopSeen> loops_seen(const model::JobModel& job, const model::Thread& thread) {
  std::vector<LoopSeen> out;
  const auto frames = model::user_frames(thread);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const auto source = job.sources.find((*frame)->file);
    if ((*frame)->loops.empty() || source == job.sources.end()) {
      continue;
    }
    if (program::is_frame_of_comprehension((*frame)->function)) {
      add_clauses(source->second, **frame, out);
      continue;
    }
    std::vector<Block> around = loops_around(source->second, (*frame)->line);
    if (around.size() + 1 == (*frame)->loops.size()) {
      if (auto own = loop_on(source->second, (*frame)->line)) {
        around.push_back(std::move(*own));
      }
    }
    if (around.size() != (*frame)->loops.size()) {
      continue;
    }
    for (std::size_t i = 0; i < around.size(); ++i) {
      model::CallSite where = model::call_site(**frame);
      where.line = around[i].line;
      out.push_back(
          {.where = std::move(where), .header = around[i].text, .over = (*frame)->loops[i]});
    }
  }
  return out;
}

std::optional<LoopSeen> loop_seen_at(const model::JobModel& job, model::Rank rank,
                                     const model::CallSite& header) {
  const model::Process* process = model::rank_process(job, rank);
  const model::Thread* thread = process == nullptr ? nullptr : model::main_thread(*process);
  if (thread == nullptr) {
    return std::nullopt;
  }
  for (LoopSeen& loop : loops_seen(job, *thread)) {
    if (loop.where.file == header.file && loop.where.line == header.line) {
      return std::move(loop);
    }
  }
  return std::nullopt;
}

std::string steps_text(const model::Iteration& over) {
  const std::string what = over.loose ? fmt::format("of the loop in {}", over.over) : over.over;
  const std::string in = what.empty() ? what : fmt::format(" ({})", what);
  if (const auto total = over.total()) {
    return fmt::format("in step {} of {}{}", *over.done, *total, in);
  }
  if (over.done) {
    return fmt::format("in step {}{}", *over.done, in);
  }
  return over.left ? fmt::format("{} steps before the end{}", *over.left, in) : std::string();
}

void add_steps(const std::vector<std::pair<model::Rank, model::Iteration>>& steps,
               Finding& finding) {
  constexpr std::size_t kMostSaid = 10;
  std::vector<std::pair<std::string, model::RankSet>> said_of;
  for (const auto& [rank, over] : steps) {
    const std::string text = steps_text(over);
    const auto same = std::find_if(said_of.begin(), said_of.end(),
                                   [&text](const auto& one) { return one.first == text; });
    if (same != said_of.end()) {
      same->second.insert(rank);
    } else if (!text.empty() && said_of.size() < kMostSaid) {
      said_of.emplace_back(text, model::RankSet{rank});
    }
  }
  for (const auto& [text, ranks] : said_of) {
    finding.evidence.push_back(
        {.rank = ranks.size() == 1 ? std::optional(ranks.front()) : std::nullopt,
         .text = fmt::format("{} {} {}", said(ranks), is_or_are(ranks), text)});
  }
}

}  // namespace ddpdoctor::detectors
