// SPDX-License-Identifier: Apache-2.0
// How many iterations of a loop the recorded calls show: the calls that each rank made at one line
// in it.
#pragma once

#include <optional>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The recorded calls of a rank at this line.
int calls_made_at(const graph::Examination& examination, const std::string& group, model::Rank rank,
                  const model::CallSite& site);

struct RecordedRounds {
  int left = 0;    // on each rank that has left the loop
  int inside = 0;  // on each rank that is in it
};

/// The calls at the line in which the ranks inside the loop are; nothing unless each rank of a side
/// made as many, and those inside made more.
std::optional<RecordedRounds> recorded_rounds(const graph::Examination& examination,
                                              const std::string& group, const Side& inside,
                                              const model::RankSet& left);

/// Each iteration of the loop makes several different calls; the side outside made only complete
/// iterations, and the other begins one more: an iteration was skipped, none was shorter.
bool made_whole_passes(const graph::Examination& examination, const Parting& parting,
                       const Side& in_loop, const Side& out);

}  // namespace ddpdoctor::detectors
