// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/swallowed.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/exceptions.h"

namespace ddpdoctor::detectors {
namespace {

/// Tracebacks print "step" for what frames since 3.11 call "Regressor.step".
std::string_view plain_function(std::string_view function) {
  const std::size_t dot = function.rfind('.');
  return dot == std::string_view::npos ? function : function.substr(dot + 1);
}

bool is_swallowed_at(const model::JobModel& job, const model::CallSite& site) {
  return !program::swallowing_clauses(lines_of(job, site.file), site.line, job.sources).empty();
}

/// The exception passed through the frame with the try.
bool passed(const Traceback& traceback, const model::CallSite& site) {
  return std::any_of(traceback.frames.begin(), traceback.frames.end(),
                     [&site](const model::CallSite& frame) {
                       return frame.file == site.file &&
                              plain_function(frame.function) == plain_function(site.function);
                     });
}

/// An exception of `odd` that passed a try in which `rest` wait, and that those did not print.
std::optional<Traceback> swallowed_by(const model::JobModel& job, const Side& odd,
                                      const Side& rest) {
  std::vector<model::CallSite> tries;
  std::copy_if(rest.path.begin(), rest.path.end(), std::back_inserter(tries),
               [&job](const model::CallSite& site) { return is_swallowed_at(job, site); });
  if (tries.empty()) {
    return std::nullopt;
  }
  std::vector<Traceback> all = tracebacks(job);
  std::erase_if(all, [&tries](const Traceback& one) {
    return !one.rank || one.of_thread || one.ignored || is_consequence(one.exception) ||
           std::none_of(tries.begin(), tries.end(),
                        [&one](const model::CallSite& site) { return passed(one, site); });
  });
  const auto by = [](const model::RankSet& ranks) {
    return [&ranks](const Traceback& one) { return ranks.contains(*one.rank); };
  };
  const auto found = std::find_if(all.rbegin(), all.rend(), by(odd.ranks));
  const bool also_others = std::any_of(all.begin(), all.end(), by(rest.ranks));
  return also_others || found == all.rend() ? std::nullopt : std::optional(*found);
}

}  // namespace

bool misses_its_thread(const graph::Examination& examination, model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  const bool waits = standing != nullptr && !standing->on_cpu && !standing->moved &&
                     (standing->activity == graph::Activity::kQueue ||
                      standing->activity == graph::Activity::kLock ||
                      standing->activity == graph::Activity::kJoin);
  if (!waits || examination.job.logs.empty()) {
    return false;
  }
  const std::vector<Traceback> all = tracebacks(examination.job);
  return std::any_of(all.begin(), all.end(), [rank](const Traceback& one) {
    return one.rank == rank && one.of_thread && one.place.known();
  });
}

std::optional<std::string> or_swallowed(const model::JobModel& job, const Path& path) {
  for (const model::CallSite& site : path) {
    const auto clauses =
        program::swallowing_clauses(lines_of(job, site.file), site.line, job.sources);
    if (clauses.empty()) {
      continue;
    }
    model::CallSite where = site;
    where.line = clauses.front().line;
    return fmt::format(
        " Or check `{}` ({}): an exception that one rank swallowed there also skips its call.",
        clauses.front().text, place(where));
  }
  return std::nullopt;
}

std::optional<Traceback> swallowed_exception(const graph::Examination& examination,
                                             const Parting& parting) {
  if (examination.job.logs.empty()) {
    return std::nullopt;
  }
  auto found = swallowed_by(examination.job, parting.odd, parting.rest);
  return !found && parting.tie ? swallowed_by(examination.job, parting.rest, parting.odd) : found;
}

}  // namespace ddpdoctor::detectors
