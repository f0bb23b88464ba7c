// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

JobBuilder story(bool alive) {
  return job().ranks(1).fact("shm-segment", {{"path", std::string("/dev/shm/torch_1_2")},
                                             {"bytes", std::int64_t{4096}},
                                             {"age_seconds", 900.0},
                                             {"creator_alive", alive},
                                             {"in_use", false}});
}

TEST(ShmLeaked, ListsWhatADeadProcessLeft) {
  const auto findings = asked("shm-leaked", story(false).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(std::get<std::vector<std::string>>(findings[0].details.at("paths")).at(0),
            "/dev/shm/torch_1_2");
}

TEST(ShmLeaked, IsSilentWhileTheMakerLives) {
  EXPECT_TRUE(asked("shm-leaked", story(true).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
