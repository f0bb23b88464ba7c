// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/exited_past.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/vanished.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/exits.h"

namespace ddpdoctor::detectors {
namespace {

using program::BlockKind;

bool ended_well(const graph::Standing& standing) {
  const auto& exit = standing.process == nullptr ? std::nullopt : standing.process->exit;
  return standing.activity == graph::Activity::kExited && exit && !exit->signal &&
         exit->status == 0;
}

/// Every rank enters the suite, and leaves a loop only at its end.
bool is_entered_by_all(const model::JobModel& job, const model::CallSite& at,
                       const program::SourceText& lines, const program::Block& block) {
  switch (block.kind) {
    case BlockKind::kFor:
      return program::is_as_long_everywhere(lines, block.line, job.sources) &&
             program::loop_exits(lines, at.line).empty();
    case BlockKind::kIf:
      return origin_of(job, Test{.where = {.file = at.file, .line = block.line, .function = {}},
                                 .condition = block.condition})
                 .source == program::Source::kUniform;
    case BlockKind::kWith:
    case BlockKind::kTry:
    case BlockKind::kFinally:
    case BlockKind::kFunction:
    case BlockKind::kClass:
      return true;
    default:
      return false;
  }
}

/// Some call ends the program, other than one that the rank is inside: `sys.exit(main())`.
bool may_end_elsewhere(const model::JobModel& job, const Path& callers) {
  constexpr std::array<std::string_view, 4> kEnds = {"exit", "_exit", "quit", "SystemExit"};
  const auto is_around = [&callers](const std::string& file, program::Node call) {
    return std::any_of(callers.begin(), callers.end(), [&](const model::CallSite& at) {
      return at.file == file && call.line() <= at.line && at.line <= call.last_line();
    });
  };
  for (const auto& [file, lines] : job.sources) {
    const auto& calls = program::facts_of(lines).calls;
    for (const std::string_view name : kEnds) {
      const auto [first, last] = calls.equal_range(name);
      if (model::is_user_file(file) && !std::all_of(first, last, [&](const auto& one) {
            return is_around(file, one.second.call);
          })) {
        return true;
      }
    }
  }
  return false;
}

bool is_passed_by_all(const model::JobModel& job, const model::CallSite& at) {
  const program::SourceText& lines = lines_of(job, at.file);
  const auto around = program::enclosing(lines, at.line);
  return !lines.empty() && program::ways_out_before(lines, at.line).empty() &&
         std::all_of(around.begin(), around.end(), [&](const program::Block& block) {
           return is_entered_by_all(job, at, lines, block);
         });
}

}  // namespace

std::optional<ExitedPast> exited_past(const graph::Examination& examination) {
  ExitedPast out;
  const model::RankSet gone = gone_under_torchrun(examination);
  for (const graph::Standing& standing : examination.standings) {
    if (ended_well(standing) || gone.contains(standing.rank)) {
      out.left.insert(standing.rank);
      continue;
    }
    const bool waits =
        standing.waits_for_ranks() && standing.user.known() && standing.thread != nullptr &&
        (out.standing == nullptr || graph::same_line(out.standing->user, standing.user));
    if (!waits) {
      return std::nullopt;
    }
    out.standing = out.standing == nullptr ? &standing : out.standing;
    out.waiting.insert(standing.rank);
  }
  const bool known = out.standing != nullptr && !out.left.empty() && may_hang(examination) &&
                     !examination.job.ended;
  return known && !may_end_elsewhere(examination.job, out.standing->callers) &&
                 std::all_of(out.standing->callers.begin(), out.standing->callers.end(),
                             [&examination](const model::CallSite& at) {
                               return is_passed_by_all(examination.job, at);
                             })
             ? std::optional(std::move(out))
             : std::nullopt;
}

}  // namespace ddpdoctor::detectors
