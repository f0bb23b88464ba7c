// SPDX-License-Identifier: Apache-2.0
// Counters of NCCL's RAS subsystem: collectives that each rank has launched, whether they have
// finished or not.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The calls of this group are known only from RAS.
bool is_counted_by_ras(const model::JobModel& job, std::string_view group);

/// No rank has a stack, and the calls of this group are known from a single answer of RAS: ranks of
/// a healthy job differ in it, too.
bool is_one_ras_answer(const graph::Examination& examination, std::string_view group);

/// In a single answer, most ranks have not yet launched the call of a few: at some moment of each
/// step of a running job, too.
bool few_are_ahead(const graph::Examination& examination, std::string_view group);

/// `undetermined` for a single answer in which ranks have launched different numbers of calls.
std::optional<Finding> counted_once(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
