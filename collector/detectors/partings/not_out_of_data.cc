// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/not_out_of_data.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;
using program::Block;
using program::BlockKind;
using program::Dependence;
using Lines = program::SourceText;

constexpr std::size_t kMostAlternatives = 2;

/// "except Stop as e", "except* (A, errors.B)": the last names of the classes.
std::set<std::string_view> caught_by(const Block& clause) {
  constexpr std::string_view kExcept = "except";
  std::string_view text = base::trim(clause.text);
  if (!text.starts_with(kExcept)) {
    return {};
  }
  text.remove_prefix(kExcept.size());
  const auto names = program::values_read(text.substr(0, text.find(" as ")));
  return {names.begin(), names.end()};
}

bool is_class_of_program(const model::JobModel& job, std::string_view name) {
  const std::string header = "class " + std::string(name);
  return std::any_of(job.sources.begin(), job.sources.end(), [&header](const auto& source) {
    return std::any_of(source.second.begin(), source.second.end(), [&header](const auto& line) {
      const std::string_view code = base::trim(line.second);
      return code.starts_with(header) &&
             (code.size() == header.size() || !base::is_word(code[header.size()]));
    });
  });
}

/// "raise errors.Stop(…)", "raise Stop from e".
bool raises(std::string_view code, std::string_view name) {
  constexpr std::string_view kRaise = "raise ";
  return code.starts_with(kRaise) &&
         program::last_name(code.substr(
             kRaise.size(), code.find_first_of("( ;#", kRaise.size()) - kRaise.size())) == name;
}

/// The tests that lead to the line where the program raises this.
std::vector<Branch> tests_that_raise(const model::JobModel& job, std::string_view name) {
  std::vector<Branch> tests;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (!raises(base::trim(text), name)) {
        continue;
      }
      for (const Block& block : program::deciding_branches(lines, number)) {
        const Dependence on = is_loop(block) ? Dependence::kNone : dependence_of(job, lines, block);
        if (on == Dependence::kData) {
          tests.push_back(branch_of(
              block, {.file = file, .line = number, .function = function_around(lines, number)}, on,
              true));
          break;
        }
      }
    }
  }
  return tests;
}

/// The frames of the side in the loop, from the loop's own frame to the one at which the sides
/// diverge.
Path around_the_loop(const Fork& fork, const LeftLoop& loop) {
  Path path = fork.below_theirs;
  path.push_back(fork.theirs);
  const auto own = std::find_if(path.begin(), path.end(), [&loop](const model::CallSite& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
  path.erase(path.begin(), own == path.end() ? path.begin() : own);
  return path;
}

/// Except clauses whose try contains the whole loop but not the side outside it.
std::vector<Block> clauses_around(const model::JobModel& job, const Fork& fork,
                                  const LeftLoop& loop) {
  std::vector<Block> found;
  for (const model::CallSite& site : around_the_loop(fork, loop)) {
    const Lines& lines = lines_of(job, site.file);
    const bool of_loop = site.function == loop.where.function && site.file == loop.where.file;
    for (Block& clause :
         program::swallowing_clauses(lines, of_loop ? loop.where.line : site.line, job.sources)) {
      found.push_back(std::move(clause));
    }
  }
  return found;
}

/// A try around the loop that catches an exception which the program itself raises to end it.
std::optional<Branch> raised_out(const model::JobModel& job, const std::vector<Block>& clauses) {
  for (const Block& clause : clauses) {
    for (const std::string_view name : caught_by(clause)) {
      std::vector<Branch> tests =
          is_class_of_program(job, name) ? tests_that_raise(job, name) : std::vector<Branch>{};
      if (tests.empty() || tests.size() > 1 + kMostAlternatives) {
        continue;
      }
      for (std::size_t i = 1; i < tests.size(); ++i) {
        tests[0].or_else.push_back({.where = tests[i].where, .condition = tests[i].condition});
      }
      return std::move(tests[0]);
    }
  }
  return std::nullopt;
}

/// `except Skip: continue` before the call in the loop: its ranks have gone to the next iteration.
std::optional<Branch> caught_before(const model::JobModel& job, const Side& in,
                                    const LeftLoop& loop) {
  const Lines& lines = lines_of(job, loop.where.file);
  const auto at = std::find_if(in.path.begin(), in.path.end(), [&loop](const auto& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
  if (at == in.path.end()) {
    return std::nullopt;
  }
  for (auto line = lines.upper_bound(loop.where.line);
       line != lines.end() && line->first < at->line; ++line) {
    for (const Block& clause : program::swallowing_clauses(lines, line->first, job.sources)) {
      const auto around = program::loop_around(lines, clause.line);
      if (clause.line <= line->first || clause.line >= at->line ||
          clause.kind != BlockKind::kExcept || !around || around->line != loop.where.line) {
        continue;
      }
      for (auto inner = lines.upper_bound(clause.line);
           inner != lines.end() && inner->first < at->line; ++inner) {
        if (base::trim(inner->second).starts_with("continue") &&
            encloses(lines, clause, inner->first)) {
          Branch branch = branch_of(clause, *at, Dependence::kData, false);
          branch.condition = clause.text;
          branch.catches = true;
          return branch;
        }
      }
    }
  }
  return std::nullopt;
}

bool comes_through(const model::CollectiveCall& call, const LeftLoop& loop) {
  const Path path = graph::callers_of(call);
  return std::any_of(path.begin(), path.end(), [&loop](const model::CallSite& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
}

}  // namespace

bool has_equal_batches(const model::JobModel& job, const Side& in, const LeftLoop& loop) {
  return std::all_of(in.ranks.begin(), in.ranks.end(), [&](model::Rank rank) {
    const auto seen = loop_seen_at(job, rank, loop.where);
    return seen && !seen->over.loose && seen->over.left.value_or(0) > 0 &&
           seen->over.over.find("DistributedSampler") != std::string::npos;
  });
}

bool read_exception_out(const Examination& examination, Explanation& explanation) {
  const Fork& fork = *explanation.fork;
  const LeftLoop& loop = *explanation.loop;
  if (auto caught = caught_before(examination.job, explanation.parting.rest, loop)) {
    const bool equal = has_equal_batches(examination.job, explanation.parting.rest, loop);
    explanation.branch = std::move(caught);
    explanation.otherwise = equal ? std::string_view() : kOrBatches;
    explanation.cause = Cause::kDivergent;
    return true;
  }
  const std::vector<Block> clauses = clauses_around(examination.job, fork, loop);
  if (clauses.empty()) {
    return false;
  }
  if (auto test = raised_out(examination.job, clauses)) {
    explanation.branch = std::move(test);
    explanation.otherwise = kOrBatches;
    explanation.cause = Cause::kDivergent;
    return true;
  }
  auto skipped = has_equal_batches(examination.job, explanation.parting.rest, loop)
                     ? skipped_step(examination.job, fork)
                     : std::nullopt;
  if (!skipped || !skipped->catches) {
    return false;
  }
  explanation.branch = std::move(skipped);
  explanation.loop.reset();
  explanation.cause = Cause::kDivergent;
  return true;
}

bool goes_equally_far(const model::JobModel& job, const Parting& parting,
                      const model::CallSite& loop) {
  const auto length = length_gone_over(job, loop, parting.odd.ranks);
  return length &&
         (length_gone_over(job, loop, parting.rest.ranks) == length ||
          std::all_of(parting.rest.ranks.begin(), parting.rest.ranks.end(), [&](model::Rank rank) {
            const auto seen = loop_seen_at(job, rank, loop);
            return seen && !seen->over.loose && seen->over.total() == length;
          }));
}

bool read_equal_rounds(const Examination& examination, Explanation& explanation) {
  auto skipped = goes_equally_far(examination.job, explanation.parting, explanation.loop->where)
                     ? skipped_in(examination.job, *explanation.fork, *explanation.loop)
                     : std::nullopt;
  if (!skipped) {
    return false;
  }
  explanation.branch = std::move(skipped);
  explanation.loop.reset();
  explanation.cause = Cause::kDivergent;
  return true;
}

bool was_never_entered(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const LeftLoop& loop = *explanation.loop;
  const Fork& fork = *explanation.fork;
  const Side& in = loop.ours_left ? parting.rest : parting.odd;
  const Side& out = loop.ours_left ? parting.odd : parting.rest;
  const Path& below = loop.ours_left ? fork.below_theirs : fork.below_ours;
  const bool elsewhere = std::any_of(below.begin(), below.end(), [&loop](const auto& site) {
    return site.file == loop.where.file && site.function == loop.where.function;
  });
  if (!elsewhere || loop.over_keys || loop.way_out || !parting.recorded || parting.shifted ||
      in.call == nullptr || out.call == nullptr) {
    return false;
  }
  bool more_known = false;
  for (const Side* side : {&in, &out}) {
    for (const model::Rank rank : side->ranks) {
      for (const model::CollectiveCall* call : examination.history.calls(parting.group, rank)) {
        if (call->sequence >= in.call->sequence) {
          continue;
        }
        if (comes_through(*call, loop)) {
          return false;
        }
        more_known = more_known || call->call_site.known();
      }
    }
  }
  return more_known;
}

}  // namespace ddpdoctor::detectors
