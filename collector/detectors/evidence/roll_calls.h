// SPDX-License-Identifier: Apache-2.0
// Ranks that a log names because they did not reach a barrier.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Which barriers: those where ranks meet for the first time, or later ones.
enum class Meeting { kFirst, kLater };

/// A finding of this kind that accuses the ranks that did not reach it; nothing if no log names
/// any, or if it is a new_group that only a few ranks called.
std::optional<Finding> roll_call_missed(const graph::Examination& examination,
                                        std::string_view kind, Meeting meeting);

/// The barrier of this fact is that of new_group, which waits like the rendezvous.
bool is_of_new_group(const model::Fact& roll_call);

/// Only a few ranks reached a new_group, which ends with a barrier of all: they are accused.
std::optional<Finding> new_group_of_few(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
