// SPDX-License-Identifier: Apache-2.0
#include "cli/left_by_others.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/model/left_segments.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::cli {
namespace {

constexpr pid_t kNoProcess = 999999999;  // Linux gives no process so high a number

class LeftByOthers : public testing::Test {
 protected:
  std::string segment_of(pid_t creator) {
    return folder_.write(fmt::format("torch_{}_77_0", creator), "x");
  }

  std::optional<std::string> note(model::JobModel job = {}) {
    leftovers::Scope scope = leftovers::scope_here(60);
    scope.shm = std::filesystem::path(folder_.path("x")).parent_path().string();
    scope.now = static_cast<double>(std::time(nullptr)) + 900;
    add_left_by_others(job, scope);
    return model::note_on_left_segments(job);
  }

  tests::TempDir folder_;
};

TEST_F(LeftByOthers, AreNotedAtTheEndOfAHealthyJob) {
  segment_of(kNoProcess);
  const auto said = note();
  ASSERT_TRUE(said.has_value());
  EXPECT_NE(said->find("1 shared memory segment"), std::string::npos) << *said;
}

TEST_F(LeftByOthers, AreNotThoseOfALiveProcess) {
  segment_of(::getpid());
  EXPECT_FALSE(note().has_value());
}

TEST_F(LeftByOthers, AreNotThoseThatAProcessHasOpen) {
  const std::ifstream held(segment_of(kNoProcess));
  EXPECT_FALSE(note().has_value());
}

TEST_F(LeftByOthers, AreNotThoseOfThisJob) {
  model::JobModel job;
  job.facts.push_back({.rank = {},
                       .pid = {},
                       .kind = "shm-segment",
                       .fields = {{"path", segment_of(kNoProcess)}, {"recorded", true}}});
  EXPECT_FALSE(note(job).has_value());
}

}  // namespace
}  // namespace ddpdoctor::cli
