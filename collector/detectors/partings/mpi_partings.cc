// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/mpi_partings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/word.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/mpi_source.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;
using graph::Examination;
using graph::Standing;

bool is_rooted(std::string_view operation) {
  constexpr std::array<std::string_view, 6> kRooted = {"broadcast", "reduce",  "gather",
                                                       "gatherv",   "scatter", "scatterv"};
  return std::find(kRooted.begin(), kRooted.end(), operation) != kRooted.end();
}

/// All ranks but the root are done when they have sent their part.
bool ends_at_root(std::string_view operation) {
  return operation == "reduce" || operation.starts_with("gather");
}

bool in_mpi(const Standing* standing) {
  return standing != nullptr && standing->thread != nullptr &&
         std::any_of(standing->thread->frames.begin(), standing->thread->frames.end(),
                     [](const model::Frame& frame) {
                       return frame.language == model::Language::kNative &&
                              model::is_mpi_function(frame.function);
                     });
}

std::string place_of(const Standing& standing) {
  return fmt::format("{}:{}", standing.user.file, standing.user.line);
}

/// An `else` is between the two lines, or they are equal: two branches, of which no rank runs both.
bool are_arms_of_mpi(const model::JobModel& job, const model::CallSite& a,
                     const model::CallSite& b) {
  constexpr int kFar = 12;  // lines
  if (a.file != b.file || a.function != b.function || std::abs(a.line - b.line) > kFar) {
    return false;
  }
  bool found = a.line == b.line;
  for (int line = std::min(a.line, b.line); line <= std::max(a.line, b.line); ++line) {
    const auto text = model::source_line(job, a.file, line);
    found = found || (text && text->find("else") != std::string_view::npos);
  }
  return found;
}

/// A few ranks, among many, that are at another line than most; empty if there are none.
model::RankSet apart_from_most(const Examination& examination, const model::RankSet& ranks) {
  std::map<model::Rank, std::string> places;
  for (const model::Rank rank : ranks) {
    if (const Standing* standing = examination.standing(rank); standing != nullptr) {
      places[rank] = place_of(*standing);
    }
  }
  const std::vector<Camp> all = camps(places);
  const bool clear = all.size() > 1 && all[0].ranks.size() * 2 > places.size();
  return clear ? ranks.minus(all[0].ranks) : model::RankSet{};
}

void set_odd(const Examination& examination, const model::RankSet& odd, Parting& parting) {
  const Standing* standing = examination.standing(odd.front());
  parting.odd.ranks = odd;
  parting.odd.standing = standing;
  parting.odd.path = standing->callers;
  const bool calls = standing->call && standing->activity != Activity::kPointToPoint;
  parting.odd.operation = calls ? standing->call->operation : "";
  parting.tie = false;
  parting.settled = true;
}

/// "MPI_COMM_WORLD.4:0" and "MPI_COMM_WORLD.4:1" were created by one split of the world.
std::string_view split_of(std::string_view group) {
  const std::size_t colon = group.rfind(':');
  return group.starts_with("MPI_COMM") && colon != std::string_view::npos ? group.substr(0, colon)
                                                                          : std::string_view{};
}

/// The number of calls that each rank made in its communicator of the split.
std::map<model::Rank, std::string> calls_in_split(const Examination& examination,
                                                  std::string_view split) {
  std::map<model::Rank, std::size_t> counted;
  for (const graph::GroupView& view : examination.groups) {
    for (const model::Rank rank : view.group.ranks) {
      if (split_of(view.group.id) == split) {
        counted[rank] = 0;
      }
    }
  }
  for (const model::CollectiveCall& call : examination.job.collectives) {
    if (!call.point_to_point && split_of(call.group) == split) {
      ++counted[call.rank];
    }
  }
  std::map<model::Rank, std::string> out;
  for (const auto& [rank, count] : counted) {
    out[rank] = fmt::format("{}", count);
  }
  return out;
}

/// Ranks whose number of calls differs from a clear majority's; empty if there is no majority.
model::RankSet odd_in_split(const Examination& examination, std::string_view split) {
  const auto counted = calls_in_split(examination, split);
  const std::vector<Camp> all = camps(counted);
  const bool clear = all.size() == 2 && all[0].ranks.size() * 2 > counted.size();
  return clear ? all[1].ranks : model::RankSet{};
}

/// True if the odd rank of the split explains the divergence.
bool settle_split(const Examination& examination, Parting& parting) {
  const model::RankSet odd = odd_in_split(examination, split_of(parting.group));
  if (odd.empty()) {
    return false;
  }
  if (odd == parting.rest.ranks) {
    parting.turn();
    parting.extra = true;
  } else if (odd != parting.odd.ranks) {
    return false;
  }
  parting.settled = true;
  parting.tie = false;
  return true;
}

/// A few ranks wait in another communicator than most: one of the majority may belong to it as well
/// and have skipped that call, unless the source shows which.
bool settle_communicators(const Examination& examination, Parting& parting) {
  const model::JobModel& job = examination.job;
  const std::string few = communicator_at(job, parting.odd.site());
  const std::string most = communicator_at(job, parting.rest.site());
  if (parting.about != graph::Disagreement::kOperation || few.empty() || most.empty() ||
      few == most || few == "MPI_COMM_WORLD" || few.ends_with("COMM_WORLD") ||
      !in_mpi(parting.odd.standing)) {
    return false;
  }
  const auto test = test_of_line(job, parting.odd.site());
  if (test && test->equal && parting.odd.ranks == model::RankSet{test->rank}) {
    return false;
  }
  parting.turn();
  const auto away = sent_away(job, parting.rest.path);
  if (away && parting.odd.ranks.contains(*away)) {
    set_odd(examination, model::RankSet{*away}, parting);
  } else {
    parting.undecided = true;
  }
  return true;
}

}  // namespace

void settle_rooted(const Examination& examination, Parting& parting) {
  const bool differ = parting.about == graph::Disagreement::kOperation;
  const bool odd_is_rooted =
      differ && is_rooted(parting.odd.operation) && !is_rooted(parting.rest.operation);
  const Side& rooted = odd_is_rooted ? parting.odd : parting.rest;
  if (!parting.recorded && settle_communicators(examination, parting)) {
    return;
  }
  if (parting.recorded || !is_rooted(rooted.operation) || !in_mpi(rooted.standing) ||
      are_arms_of_mpi(examination.job, parting.odd.site(), parting.rest.site())) {
    return;
  }
  if (odd_is_rooted) {
    parting.turn();
  }
  const model::RankSet others = parting.odd.ranks;
  if (const auto away = sent_away(examination.job, parting.rest.path);
      differ && away && others.contains(*away)) {
    set_odd(examination, model::RankSet{*away}, parting);
    return;
  }
  const auto test = test_of_line(examination.job, parting.rest.site());
  if (test && !test->equal && others.contains(test->rank)) {
    set_odd(examination, model::RankSet{test->rank}, parting);
  } else if (test && test->equal && parting.rest.ranks == model::RankSet{test->rank}) {
    parting.turn();
    parting.extra = true;
    parting.settled = true;
    parting.tie = false;
  } else if (odd_is_rooted && !ends_at_root(parting.rest.operation)) {
    // A few ranks wait for the root, which has continued: most likely they are alone in the call.
    parting.turn();
  } else if (differ && others.size() > 1) {
    const model::RankSet apart = apart_from_most(examination, others);
    parting.undecided = apart.empty();
    if (!apart.empty()) {
      set_odd(examination, apart, parting);
    }
  }
}

bool is_inside_the_call(const Standing* standing, const Parting& parting) {
  return parting.recorded && in_mpi(standing) && standing->activity == Activity::kCollective &&
         standing->call && standing->call->group == parting.group && !standing->call->sequence &&
         graph::same_line(standing->user, parting.rest.site());
}

bool is_in_finalize(const Standing* standing) {
  return standing != nullptr && standing->activity == Activity::kExit && standing->call &&
         standing->call->operation == "finalize";
}

model::RankSet finalized_early(const Examination& examination) {
  model::RankSet out;
  for (const Parting& parting : partings(examination)) {
    for (const model::Rank rank : parting.odd.ranks) {
      if (is_in_finalize(examination.standing(rank)) && parting.odd.call == nullptr) {
        out.insert(rank);
      }
    }
  }
  return out;
}

void settle_splits(const Examination& examination, std::vector<Parting>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].recorded || split_of(all[i].group).empty()) {
      continue;
    }
    const auto larger = std::find_if(all.begin(), all.end(), [&](const Parting& other) {
      return other.rest.ranks.size() + other.odd.ranks.size() >
                 all[i].rest.ranks.size() + all[i].odd.ranks.size() &&
             hold_each_other(all[i], other);
    });
    if (larger != all.end() && settle_split(examination, all[i])) {
      all.erase(larger);
      return;
    }
  }
}

}  // namespace ddpdoctor::detectors
