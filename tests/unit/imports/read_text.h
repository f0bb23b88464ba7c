// SPDX-License-Identifier: Apache-2.0
// Reads texts, for the tests of readers.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"

namespace ddpdoctor::imports {

inline model::JobModel read_log(std::string_view text, const std::string& path = "ci.log") {
  auto job = read_text(text, path);
  EXPECT_TRUE(job);
  return std::move(*job);
}

/// Settled, as if it were all that was given.
inline model::JobModel read_dump(std::string_view text, const std::string& path = "dump.txt") {
  auto job = read_text(text, path);
  EXPECT_TRUE(job);
  settle_dumps(*job);
  return std::move(*job);
}

/// The only process, of one snapshot.
inline const model::Process& only(const model::JobModel& job) {
  EXPECT_EQ(job.observations.size(), 1U);
  EXPECT_EQ(job.observations.front().processes.size(), 1U);
  return job.observations.front().processes.front();
}

}  // namespace ddpdoctor::imports
