// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/call_ahead.h"

#include <algorithm>

#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;
using program::Block;
using Lines = program::SourceText;

template <typename Question>
bool each_of_rest_made(const Examination& examination, const Parting& parting, Question question) {
  return std::all_of(parting.rest.ranks.begin(), parting.rest.ranks.end(), [&](model::Rank rank) {
    const graph::Calls& calls = examination.history.calls(parting.group, rank);
    const std::size_t first = calls.size() > kMostRead ? calls.size() - kMostRead : 0;
    return std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end(), question);
  });
}

/// Every rank that enters this function reaches the line.
bool is_unconditional(const Lines& lines, int line) {
  const std::vector<Block> blocks = program::deciding_branches(lines, line);
  return lines.contains(line) &&
         std::all_of(blocks.begin(), blocks.end(), [](const Block& one) { return is_loop(one); });
}

/// Further down, or in the next iteration of a loop around both.
bool stands_ahead(const Lines& lines, const Fork& fork) {
  if (fork.theirs.line < fork.ours.line) {
    return true;
  }
  const std::vector<Block> around = program::enclosing(lines, fork.theirs.line);
  return std::any_of(around.begin(), around.end(), [&](const Block& block) {
    return is_loop(block) && block.line < fork.ours.line && encloses(lines, block, fork.ours.line);
  });
}

}  // namespace

bool all_called_before(const Examination& examination, const Parting& parting) {
  return each_of_rest_made(examination, parting, [&parting](const model::CollectiveCall* call) {
    return call->call_site.known() && graph::same_line(call->call_site, parting.odd.site());
  });
}

bool sleep_before_it(const Parting& parting) {
  const auto fork = parting.odd.activity() == graph::Activity::kSleeping
                        ? fork_of(parting.odd.path, parting.rest.path)
                        : std::nullopt;
  return fork && fork->ours.line < fork->theirs.line;
}

bool is_call_of_all(const Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (parting.odd.call != nullptr && !parting.odd.path.empty()) {
    const Path way = graph::callers_of(*parting.odd.call);
    const auto came = [&way](const model::CollectiveCall* call) {
      return same_path(graph::callers_of(*call), way);
    };
    if (!way.empty() && each_of_rest_made(examination, parting, came)) {
      return true;
    }
  }
  if (!explanation.fork || graph::same_line(explanation.fork->ours, explanation.fork->theirs)) {
    return false;
  }
  const Fork& fork = *explanation.fork;
  const auto open = [&examination](const model::CallSite& site) {
    return is_unconditional(lines_of(examination.job, site.file), site.line);
  };
  return open(fork.ours) && std::all_of(fork.below_ours.begin(), fork.below_ours.end(), open) &&
         stands_ahead(lines_of(examination.job, fork.ours.file), fork);
}

}  // namespace ddpdoctor::detectors
