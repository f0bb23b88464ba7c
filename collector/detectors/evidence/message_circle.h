// SPDX-License-Identifier: Apache-2.0
// A circle of ranks in sends and receives: which of them differs, and the sentences about it.
#pragma once

#include <optional>
#include <string>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "rank 0 is waiting in recv from rank 1".
std::string said_of_message(const graph::Standing& standing);

/// If all ranks of a circle do one thing and a single rank does the other, that rank addresses the
/// wrong peer: the ring would work if it addressed the rank that waits for it. Else the circle.
model::RankSet odd_in_circle(const graph::Examination& examination, const model::RankSet& circle);

/// Advice for the odd rank of a circle: to address the rank that waits for it.
std::optional<std::string> other_peer(const graph::Examination& examination,
                                      const model::RankSet& circle, const model::RankSet& odd);

/// One sends to the other, which receives from it with another tag: their order is correct.
bool only_tags_differ(const graph::Examination& examination, const model::RankSet& circle);

/// "ranks 0 and 1 are both waiting in recv; neither sends", if all ranks of the circle do the same.
std::optional<std::string> all_do_the_same(const graph::Examination& examination,
                                           const model::RankSet& circle);

}  // namespace ddpdoctor::detectors
