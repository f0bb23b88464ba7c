// SPDX-License-Identifier: Apache-2.0
// What the source around a call of MPI says, in C or Python: which rank a test names, and in which
// communicator the call is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "me != 3", "rank == 0": which rank a condition names.
struct RankTest {
  model::Rank rank = 0;
  bool equal = false;
};

/// A plain test of one name against one number: the only comparison of the text.
std::optional<RankTest> rank_test(std::string_view text);

/// The test right above the line, or on it.
std::optional<RankTest> test_of_line(const model::JobModel& job, const model::CallSite& site);

/// The rank that a test sends another way before one of these lines ("if (rank == 2) return;").
std::optional<model::Rank> sent_away(const model::JobModel& job, const Path& path);

/// The communicator of the collective on this line, as it is written: "MPI_COMM_WORLD", "self.row".
/// Empty when it cannot be read.
std::string communicator_at(const model::JobModel& job, const model::CallSite& site);

}  // namespace ddpdoctor::detectors
