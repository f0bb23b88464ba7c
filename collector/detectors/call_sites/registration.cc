// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/registration.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::Dependence;
using Lines = program::SourceText;

constexpr std::string_view kLocals = "<locals>.";

/// The name stands in the line as a word of its own.
bool names(std::string_view line, std::string_view name) {
  for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !base::is_word(line[at - 1]);
    if (begins && (end == line.size() || !base::is_word(line[end]))) {
      return true;
    }
  }
  return false;
}

/// "MeanOverRanks" of "MeanOverRanks.filter", "collect" of "install.<locals>.collect"; empty for a
/// plain function, which is called by its name where it is needed.
std::string_view registered_name(std::string_view qualified) {
  const std::size_t local = qualified.rfind(kLocals);
  if (local != qualified.npos) {
    qualified.remove_prefix(local + kLocals.size());
    return qualified.substr(0, qualified.find('.'));
  }
  const std::size_t dot = qualified.find('.');
  return dot == qualified.npos ? std::string_view() : qualified.substr(0, dot);
}

/// A line that says what the name is, or where it comes from, puts nothing in place.
bool only_declares(std::string_view code) {
  constexpr std::string_view kWords[] = {
      "class ", "def ", "async def ", "import ", "from ", "#", "\"", "'", "@", "return isinst"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [code](std::string_view word) { return code.starts_with(word); }) ||
         code.find("isinstance(") != code.npos || code.find("super(") != code.npos;
}

/// "Console() if rank == 0 else Silent()": the condition.
std::string_view inline_condition(std::string_view code) {
  const std::size_t from = code.find(" if ");
  const std::size_t to = from == code.npos ? from : code.find(" else ", from);
  return to == code.npos ? std::string_view() : base::trim(code.substr(from + 4, to - from - 4));
}

Branch branch_at(const std::string& file, int line, const std::string& function,
                 std::string condition, const model::CallSite& guarded) {
  return {.where = {.file = file, .line = line, .function = function},
          .condition = std::move(condition),
          .on = Dependence::kRank,
          .leads_to_ours = true,
          .guarded = guarded};
}

/// The test of the rank that leads to this line, or stands in it.
std::optional<Branch> rank_test_at(const model::JobModel& job, const std::string& file,
                                   const Lines& lines, int line, std::string_view code) {
  const std::string function = function_around(lines, line);
  const model::CallSite guarded{.file = file, .line = line, .function = function};
  const std::string_view condition = inline_condition(code);
  if (!condition.empty() &&
      dependence_of(job, lines, {.line = line, .text = {}, .condition = std::string(condition)}) ==
          Dependence::kRank) {
    return branch_at(file, line, function, std::string(condition), guarded);
  }
  for (const Block& block : program::deciding_branches(lines, line)) {
    if (!is_loop(block) && dependence_of(job, lines, block) == Dependence::kRank) {
      return branch_at(file, block.line, function, block.condition, guarded);
    }
  }
  return std::nullopt;
}

/// Every place that puts `name` in place stands under a test of the rank.
std::optional<Branch> under_rank(const model::JobModel& job, std::string_view name) {
  std::optional<Branch> found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view code = base::trim(text);
      if (only_declares(code) || !names(code.substr(0, code.find(" #")), name)) {
        continue;
      }
      auto test = rank_test_at(job, file, lines, number, code);
      if (!test) {
        return std::nullopt;
      }
      found = found ? std::move(found) : std::move(test);
    }
  }
  return found;
}

/// A function inside another one exists only where that came to its `def`.
std::optional<Branch> defined_under_rank(const model::JobModel& job, const model::CallSite& site) {
  const Lines& lines = lines_of(job, site.file);
  for (const Block& block : program::enclosing(lines, site.line)) {
    if (block.kind == BlockKind::kFunction) {
      return rank_test_at(job, site.file, lines, block.line, {});
    }
  }
  return std::nullopt;
}

/// What the logging module calls of the program's: only where the logger's level lets a record
/// through, and for the handlers it has there.
bool is_logging_hook(std::string_view function) {
  return function.ends_with(".filter") || function.ends_with(".emit") ||
         function.ends_with(".format") || function.ends_with(".handle");
}

/// `log.info("loss %s", Mean(loss))`: an argument becomes text where the record is let through, and
/// not before; `f"loss {mean}"` becomes text first.
bool is_formatted_late(const model::JobModel& job, const model::CallSite& caller,
                       const model::CallSite& method) {
  const std::string_view name = program::last_name(method.function);
  if (name != "__str__" && name != "__repr__" && name != "__format__") {
    return false;
  }
  const std::string code = program::statement_at(lines_of(job, caller.file), caller.line);
  constexpr std::string_view kAtOnce[] = {"f\"", "f'", ".format(", "\" % ", "' % ", "str("};
  return std::none_of(std::begin(kAtOnce), std::end(kAtOnce), [&code](std::string_view one) {
    return code.find(one) != std::string::npos;
  });
}

bool writes_to_log(const model::JobModel& job, const model::CallSite& site) {
  constexpr std::string_view kCalls[] = {".debug(", ".info(",     ".warning(",  ".error(",
                                         ".log(",   ".critical(", ".exception("};
  const std::string code = program::statement_at(lines_of(job, site.file), site.line);
  return std::any_of(std::begin(kCalls), std::end(kCalls), [&code](std::string_view call) {
    return code.find(call) != std::string::npos;
  });
}

/// `log.setLevel(INFO if rank == 0 else WARNING)`: some ranks have records that others do not.
std::optional<Branch> logging_for_ranks(const model::JobModel& job) {
  constexpr std::string_view kSettings[] = {".setLevel(", ".addHandler(", ".addFilter(",
                                            "logging.disable(", "basicConfig("};
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view code = base::trim(text);
      const bool sets = std::any_of(
          std::begin(kSettings), std::end(kSettings),
          [code](std::string_view one) { return code.find(one) != std::string_view::npos; });
      if (!sets || only_declares(code)) {
        continue;
      }
      // Inside the brackets: "INFO if rank == 0 else WARNING".
      const std::size_t open = code.find('(');
      if (auto test =
              rank_test_at(job, file, lines, number, code.substr(std::min(open, code.size())))) {
        return test;
      }
    }
  }
  return std::nullopt;
}

/// `self.run = accelerator.on_main_process(self.run)`: a function that is given, without being
/// called, to what lets single ranks in.
std::optional<Branch> wrapped_for_ranks(const model::JobModel& job, const model::CallSite& site) {
  const std::string_view name = program::last_name(site.function);
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view code = base::trim(text);
      if (name.empty() || only_declares(code) || !names(code, name)) {
        continue;
      }
      for (const program::Call& call : program::calls_in(code)) {
        const std::string_view arguments = code.substr(call.begin + call.callee.size() + 1);
        const std::string_view given =
            base::trim(arguments.substr(0, arguments.find_first_of(",)")));
        if (program::last_name(given) == name &&
            program::lets_ranks_in_by_attribute(program::last_name(call.callee))) {
          return branch_at(file, number, function_around(lines, number), std::string(code), site);
        }
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

}  // namespace

bool comes_through_logging(const model::JobModel& job, const model::CallSite& caller,
                           const Path& below) {
  return !below.empty() && writes_to_log(job, caller) &&
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
