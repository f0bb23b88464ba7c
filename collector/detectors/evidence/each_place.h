// SPDX-License-Identifier: Apache-2.0
// Where the waiting ranks are, for findings that name no cause.
#pragma once

#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "ranks 0-3 are in barrier (train.py:20)" if several ranks are in one call at one line; empty if
/// they are not.
std::string common_whereabouts(const graph::Examination& examination, const model::RankSet& ranks);

/// "the stacks of ranks 1-3 are cut off before the call they are in" if these are the unobserved
/// ranks, and a dump has frames of each; else empty.
std::string cut_stacks_said(const graph::Examination& examination);

/// Adds a location for each place of these ranks, and where each of them is.
void tell_each_place(const graph::Examination& examination, const model::RankSet& ranks,
                     Finding& finding);

}  // namespace ddpdoctor::detectors
