// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/shared_path.h"

#include <algorithm>
#include <cstddef>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/program/questions/blocks.h"

namespace ddpdoctor::detectors {
namespace {

/// The path of one rank to the call of its side; empty if it is not known, or the call is another.
Path path_of(const graph::Examination& examination, const Parting& parting, const Side& side,
             model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  if (standing != nullptr && standing->call && standing->call->group == parting.group &&
      standing->call->operation == side.operation &&
      (!parting.sequence || standing->call->sequence == parting.sequence)) {
    return standing->callers;
  }
  const model::CollectiveCall* call =
      parting.sequence ? examination.history.at(parting.group, rank, *parting.sequence) : nullptr;
  return call != nullptr && call->operation == side.operation ? graph::callers_of(*call) : Path();
}

/// Two ranks are in two arms of one `if` or `match`: it led both of them to the call.
bool in_arms(const model::JobModel& job, const model::CallSite& a, const model::CallSite& b) {
  if (a.file != b.file || a.function != b.function) {
    return false;
  }
  const auto match_around = [&lines = lines_of(job, a.file)](int line) {
    const auto around = program::enclosing(lines, line);
    const auto found = std::find_if(around.begin(), around.end(), [](const program::Block& block) {
      return block.kind == program::BlockKind::kMatch;
    });
    return found == around.end() ? std::nullopt : std::optional(found->line);
  };
  const auto match = match_around(a.line);
  return (match && match == match_around(b.line)) ||
         are_siblings(job, {.ours = a, .theirs = b, .below_ours = {}, .below_theirs = {}});
}

/// How many of the outermost frames of its path the side's ranks share.
std::size_t shared_frames(const graph::Examination& examination, const Parting& parting,
                          const Side& side) {
  std::size_t shared = side.path.size();
  if (!side.calls()) {
    return shared;
  }
  for (const model::Rank rank : side.ranks) {
    const Path path = path_of(examination, parting, side, rank);
    const auto [mine, theirs] = std::mismatch(side.path.rbegin(), side.path.rend(), path.rbegin(),
                                              path.rend(), graph::same_line);
    auto alike = static_cast<std::size_t>(mine - side.path.rbegin());
    if (alike == 0) {
      continue;  // a record that has the innermost frames only
    }
    if (mine != side.path.rend() && theirs != path.rend() &&
        in_arms(examination.job, *mine, *theirs)) {
      ++alike;
    }
    shared = std::min(shared, alike);
  }
  return shared;
}

void leave_out(Path& below, std::size_t of_path, std::size_t shared) {
  const std::size_t above = of_path - below.size();
  const std::size_t kept = shared > above ? shared - above : 0;
  below.erase(below.begin(), below.end() - static_cast<std::ptrdiff_t>(kept));
}

}  // namespace

std::optional<Fork> fork_between(const graph::Examination& examination, const Parting& parting) {
  auto fork = fork_of(parting.odd.path, parting.rest.path);
  if (fork) {
    leave_out(fork->below_ours, parting.odd.path.size(),
              shared_frames(examination, parting, parting.odd));
    leave_out(fork->below_theirs, parting.rest.path.size(),
              shared_frames(examination, parting, parting.rest));
  }
  return fork;
}

}  // namespace ddpdoctor::detectors
