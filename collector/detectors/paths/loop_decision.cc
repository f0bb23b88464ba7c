// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/loop_decision.h"

#include <algorithm>
#include <string>

#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/ways_out.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::DataEnd;
using program::Dependence;
using Lines = program::SourceText;

/// A test of the rank or of its own data that decides whether the line is reached; below `loop`, if
/// there is one.
std::optional<Branch> own_test_of(const model::JobModel& job, const Lines& lines,
                                  const model::CallSite& in, const Block* loop) {
  for (const Block& block : program::deciding_branches(lines, in.line)) {
    const bool outside =
        loop != nullptr && (!encloses(lines, *loop, block.line) || block.line == loop->line);
    if (is_loop(block) || outside) {
      continue;
    }
    const program::Origin origin = origin_of(job, lines, block);
    const Dependence on = dependence_of(origin);
    const bool own = program::is_own(origin.source) && !origin.like_an_option;
    if (on == Dependence::kRank || own) {
      Branch branch = branch_of(block, in, on, true);
      branch.unproven = is_unproven(origin);
      return branch;
    }
  }
  return std::nullopt;
}

// "if not isfinite(loss): continue" before the call: a rank that skipped it once ends the loop one
// call short.
std::optional<Branch> skip_of(const model::JobModel& job, const Lines& lines, const Block& loop,
                              const model::CallSite& in) {
  return own_test_of(job, lines, in, &loop);
}

// "if not found_inf: for p in parameters: …": a rank that did not enter the loop has not left it.
std::optional<Branch> guard_of(const model::JobModel& job, const Lines& lines, const Block& loop,
                               const model::CallSite& in) {
  for (const Block& block : program::enclosing(lines, loop.line)) {
    const bool guards =
        (block.kind == BlockKind::kIf || block.kind == BlockKind::kElif) && block.line != loop.line;
    const program::Origin origin = guards ? origin_of(job, lines, block) : program::Origin{};
    if (dependence_of(origin) == Dependence::kData) {
      Branch branch = branch_of(block, in, Dependence::kData, false);
      branch.unproven = is_unproven(origin);
      return branch;
    }
    if (is_loop(block) && block.line != loop.line) {
      break;
    }
  }
  return std::nullopt;
}

/// True if the value comes from outside the rank's data: two ranks that read equal data may still
/// end differently. The amount of data is what uneven inputs are about.
bool is_no_matter_of_data(program::Source source) {
  return source == program::Source::kEnvironment || source > program::Source::kQueue;
}

/// `if spent >= limit: return`: a generator that goes over what it is given ends before its data
/// do, by a quantity of the rank's own.
bool ends_early(const std::optional<Branch>& exit, const Block& loop, program::Source source) {
  return exit && source == program::Source::kData && loop.kind == BlockKind::kFor &&
         exit->where.line != loop.line && exit->condition.find_first_of("<>") != std::string::npos;
}

/// What `yield from self.blocks` goes over.
program::Items items_handed_on(const model::JobModel& job, const program::Yield& yield) {
  constexpr std::string_view kFrom = "yield from ";
  const std::string statement = program::statement_at(*yield.text, yield.line);
  return statement.starts_with(kFrom)
             ? program::items_of(std::string_view(statement).substr(kFrom.size()),
                                 {.text = yield.text, .line = yield.line}, job.sources)
             : program::Items::kUnknown;
}

bool is_in_a_loop_of_its_own(const program::Yield& yield) {
  return program::loop_around(*yield.text, yield.line).has_value();
}

}  // namespace

program::Items items_of(const model::JobModel& job, const Lines& lines, int loop) {
  const auto yields_element = [&job](const program::Yield& yield) {
    const auto around = program::loop_around(*yield.text, yield.line);
    const auto items = around            ? program::items_of(*yield.text, around->line, job.sources)
                       : yield.delegates ? items_handed_on(job, yield)
                                         : program::Items::kUnknown;
    return items == program::Items::kElements;
  };
  const auto yields = program::yields_behind(lines, loop, job.sources);
  return !yields.empty() && std::all_of(yields.begin(), yields.end(), yields_element)
             ? program::Items::kElements
             : program::items_of(lines, loop, job.sources);
}

std::optional<Branch> end_of_generator(const model::JobModel& job,
                                       const std::vector<program::Yield>& yields,
                                       const model::CallSite& in) {
  const bool once = std::none_of(yields.begin(), yields.end(), is_in_a_loop_of_its_own);
  for (const program::Yield& yield : yields) {
    const Lines& there = *yield.text;
    const auto around = program::loop_around(there, yield.line);
    const model::CallSite at{.file = *yield.file, .line = yield.line, .function = yield.function};
    if (!around) {
      auto decided = once ? own_test_of(job, there, at, nullptr) : std::nullopt;
      if (decided) {
        decided->leads_to_ours = false;  // a rank for which it holds stays in the loop
        decided->guarded = in;
        return decided;
      }
      continue;
    }
    auto decided = way_out_of(job, there, *around, at, program::data_end_of(there, around->line));
    const auto source = decided ? origin_of(job, *decided).source : program::Source::kUniform;
    if (!is_no_matter_of_data(source) && !ends_early(decided, *around, source)) {
      decided.reset();
    }
    // Filtered data are shorter data; of a model's parts all ranks have equally many.
    if (!decided && items_of(job, there, around->line) == program::Items::kElements) {
      decided = skip_of(job, there, *around, at);
    }
    if (decided) {
      decided->guarded = in;
      return decided;
    }
  }
  return std::nullopt;
}

std::optional<Branch> loop_decision(const model::JobModel& job, const Lines& lines,
                                    const Block& loop, const model::CallSite& in,
                                    const std::optional<DataEnd>& end) {
  if (auto exit = way_out_of(job, lines, loop, in, end)) {
    return exit;
  }
  if (auto skip = skip_of(job, lines, loop, in)) {
    return skip;
  }
  const auto yields = program::yields_behind(lines, loop.line, job.sources);
  if (auto ended = end_of_generator(job, yields, in)) {
    return ended;
  }
  return guard_of(job, lines, loop, in);
}

}  // namespace ddpdoctor::detectors
