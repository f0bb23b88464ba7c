// SPDX-License-Identifier: Apache-2.0
// What the source around an MPI call shows, in C or Python: the rank that a test names, and the
// communicator of the call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// "me != 3", "rank == 0": the rank in a condition.
struct RankTest {
  model::Rank rank = 0;
  bool equal = false;
};

/// A simple comparison of one name with one number, the only one in the text.
std::optional<RankTest> rank_test(std::string_view text);

/// The test directly above the line, or on it.
std::optional<RankTest> test_of_line(const model::JobModel& job, const model::CallSite& site);

/// The rank that a test sends elsewhere before one of these lines ("if (rank == 2) return;").
std::optional<model::Rank> sent_away(const model::JobModel& job, const Path& path);

/// The communicator of the collective on this line, as written: "MPI_COMM_WORLD", "self.row". Empty
/// if it cannot be determined.
std::string communicator_at(const model::JobModel& job, const model::CallSite& site);

}  // namespace ddpdoctor::detectors
