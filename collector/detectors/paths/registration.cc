// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/registration.h"

#include <algorithm>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::Dependence;
using Lines = program::SourceText;

constexpr std::string_view kLocals = "<locals>.";

/// "MeanOverRanks" of "MeanOverRanks.filter", "collect" of "install.<locals>.collect"; empty for a
/// plain function, which is called by its name.
std::string_view registered_name(std::string_view qualified) {
  const std::size_t local = qualified.rfind(kLocals);
  if (local != qualified.npos) {
    qualified.remove_prefix(local + kLocals.size());
    return qualified.substr(0, qualified.find('.'));
  }
  const std::size_t dot = qualified.find('.');
  return dot == qualified.npos ? std::string_view() : qualified.substr(0, dot);
}

Branch registering_branch(const std::string& file, int line, const std::string& function,
                          std::string condition, const model::CallSite& guarded) {
  return {.where = {.file = file, .line = line, .function = function},
          .condition = std::move(condition),
          .on = Dependence::kRank,
          .leads_to_ours = true,
          .guarded = guarded};
}

/// The test of the rank that leads to this line, or `condition`, which is part of it.
std::optional<Branch> rank_test_at(const model::JobModel& job, const std::string& file,
                                   const Lines& lines, int line, const std::string& condition) {
  const std::string function = function_around(lines, line);
  const model::CallSite guarded{.file = file, .line = line, .function = function};
  if (!condition.empty() &&
      dependence_of(job, lines, {.line = line, .text = {}, .condition = condition}) ==
          Dependence::kRank) {
    return registering_branch(file, line, function, condition, guarded);
  }
  for (const Block& block : program::deciding_branches(lines, line)) {
    if (!is_loop(block) && dependence_of(job, lines, block) == Dependence::kRank) {
      return registering_branch(file, block.line, function, block.condition, guarded);
    }
  }
  return std::nullopt;
}

/// Every place that registers `name` is under a test of the rank.
std::optional<Branch> under_rank(const model::JobModel& job, std::string_view name) {
  std::optional<Branch> found;
  for (const auto& [file, lines] : job.sources) {
    for (const program::Use& use : program::uses_of(lines, name)) {
      auto test = rank_test_at(job, file, lines, use.line, use.condition);
      if (!test) {
        return std::nullopt;
      }
      if (!found) {
        found = std::move(test);
      }
    }
  }
  return found;
}

/// An inner function exists only after the outer one reached its `def`.
std::optional<Branch> defined_under_rank(const model::JobModel& job, const model::CallSite& site) {
  const Lines& lines = lines_of(job, site.file);
  for (const Block& block : program::enclosing(lines, site.line)) {
    if (block.kind == BlockKind::kFunction) {
      return rank_test_at(job, site.file, lines, block.line, {});
    }
  }
  return std::nullopt;
}

/// Functions of the program that the logging module calls: only for records that the logger's level
/// passes, and for its handlers.
bool is_logging_hook(std::string_view function) {
  return function.find('.') != function.npos &&
         program::log_call(program::last_name(function)) == program::LogCall::kHook;
}

/// `log.info("loss %s", Mean(loss))`: an argument is formatted only if the record passes; `f"loss
/// {mean}"` is formatted first.
bool is_formatted_late(const model::JobModel& job, const model::CallSite& caller,
                       const model::CallSite& method) {
  const std::string_view name = program::last_name(method.function);
  if (name != "__str__" && name != "__repr__" && name != "__format__") {
    return false;
  }
  return !program::makes_text_at_once(lines_of(job, caller.file), caller.line);
}

/// `log.setLevel(INFO if rank == 0 else WARNING)`: some ranks create records that others do not.
std::optional<Branch> logging_for_ranks(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const program::Use& setup : program::logging_setups(lines)) {
      if (auto test = rank_test_at(job, file, lines, setup.line, setup.condition)) {
        return test;
      }
    }
  }
  return std::nullopt;
}

/// `self.run = accelerator.on_main_process(self.run)`: a function passed, without a call, to
/// something that runs it on some ranks only.
std::optional<Branch> wrapped_for_ranks(const model::JobModel& job, const model::CallSite& site) {
  const std::string_view name = program::last_name(site.function);
  for (const auto& [file, lines] : job.sources) {
    for (const program::Wrapping& one : program::wrappings_of(lines, name)) {
      if (program::lets_ranks_in_by_attribute(program::last_name(one.callee))) {
        return registering_branch(file, one.line, function_around(lines, one.line), one.statement,
                                  site);
      }
    }
  }
  return std::nullopt;
}

std::optional<Branch> registered(const model::JobModel& job, const Path& below) {
  for (auto site = below.rbegin(); site != below.rend(); ++site) {
    if (auto wrapped = wrapped_for_ranks(job, *site)) {
      return wrapped;
    }
    const bool local = site->function.find(kLocals) != std::string::npos;
    if (auto test = local ? defined_under_rank(job, *site) : std::nullopt) {
      return test;
    }
    const std::string_view name = registered_name(site->function);
    if (auto test = name.empty() ? std::nullopt : under_rank(job, name)) {
      return test;
    }
  }
  return std::nullopt;
}

/// One line runs a method of that name on both sides: each class has one, and the choice of the
/// class alone does not say that one of them makes another call (dispatch.h asks that).
bool are_counterparts(const Fork& fork) {
  const bool one_line = graph::same_line(fork.ours, fork.theirs);
  return one_line && !fork.below_ours.empty() && !fork.below_theirs.empty() &&
         program::last_name(fork.below_ours.back().function) ==
             program::last_name(fork.below_theirs.back().function);
}

}  // namespace

bool comes_through_logging(const model::JobModel& job, const model::CallSite& caller,
                           const Path& below) {
  return !below.empty() && program::writes_to_log(lines_of(job, caller.file), caller.line) &&
         (is_logging_hook(below.back().function) || is_formatted_late(job, caller, below.back()));
}

std::optional<Branch> registered_for_ranks(const model::JobModel& job, const Fork& fork) {
  const bool ours_logs = comes_through_logging(job, fork.ours, fork.below_ours);
  if (ours_logs || comes_through_logging(job, fork.theirs, fork.below_theirs)) {
    if (auto test = logging_for_ranks(job)) {
      test->leads_to_ours = ours_logs;
      return test;
    }
  }
  if (are_counterparts(fork)) {
    return std::nullopt;
  }
  if (auto ours = registered(job, fork.below_ours)) {
    return ours;
  }
  auto theirs = registered(job, fork.below_theirs);
  if (theirs) {
    theirs->leads_to_ours = false;
  }
  return theirs;
}

}  // namespace ddpdoctor::detectors
