// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/raised_lines.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {

std::string raised_here(const Traceback& traceback) {
  if (traceback.remote) {
    return named(*traceback.remote) + " raised here";
  }
  const std::string who = traceback.rank ? fmt::format("rank {}", *traceback.rank) : "this line";
  return fmt::format("{}{} raised{}", traceback.of_thread ? "a thread of " : "",
                     traceback.of_thread && !traceback.rank ? "the job" : who,
                     traceback.rank || traceback.of_thread ? " here" : "");
}

const Traceback* quoted_at(const std::vector<Traceback>& all, const Suspect& suspect) {
  const auto found = std::find_if(all.begin(), all.end(), [&suspect](const Traceback& one) {
    return one.remote && one.rank == suspect.rank && one.place == suspect.place;
  });
  return found == all.end() ? nullptr : &*found;
}

void add_awaiting_line(const Traceback& quoted, Finding& finding) {
  if (quoted.remote->awaited.known()) {
    finding.locations.push_back(location(
        quoted.remote->awaited, quoted.rank ? model::RankSet{*quoted.rank} : model::RankSet{},
        "its result was awaited here"));
  }
  if (quoted.remote->pid > 0) {
    finding.details["pid"] = static_cast<std::int64_t>(quoted.remote->pid);
  }
}

void add_raiser(const Suspect& suspect, Finding& finding) {
  if (suspect.raiser.known() && !graph::same_line(suspect.raiser, suspect.place)) {
    finding.locations.push_back(location(suspect.raiser, {}, "the exception came from here"));
  }
}

}  // namespace ddpdoctor::detectors
