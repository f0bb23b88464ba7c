// SPDX-License-Identifier: Apache-2.0
#include "collector/model/left_segments.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// A segment made by another job, in a /dev/shm that is `used` per cent full.
JobBuilder story(bool alive, std::int64_t used = 20) {
  return job()
      .ranks(1)
      .fact("shm-segment", {{"path", std::string("/dev/shm/torch_1_2")},
                            {"bytes", std::int64_t{4096}},
                            {"age_seconds", 900.0},
                            {"creator_alive", alive},
                            {"in_use", false}})
      .fact("shm-usage", {{"path", std::string("/dev/shm")},
                          {"bytes_total", std::int64_t{100}},
                          {"bytes_used", used}});
}

TEST(ShmLeaked, LeavesWhatAnotherJobLeftToANote) {
  const auto told = story(false).build();
  EXPECT_TRUE(asked("shm-leaked", told).empty());
  const auto note = model::note_on_left_segments(told);
  ASSERT_TRUE(note.has_value());
  EXPECT_NE(note->find("1 shared memory segment (4.0 KiB)"), std::string::npos) << *note;
  EXPECT_NE(note->find("ddpdoctor clean"), std::string::npos);
  EXPECT_FALSE(model::note_on_left_segments(story(true).build()).has_value());
}

TEST(ShmLeaked, SaysSoWhereNotEverySegmentWasLookedAt) {
  const auto told =
      story(false)
          .fact("shm-usage", {{"path", std::string("/dev/shm")}, {"segments", std::int64_t{1500}}})
          .build();
  const auto note = model::note_on_left_segments(told);
  ASSERT_TRUE(note.has_value());
  EXPECT_NE(note->find("at least 1 shared memory segment"), std::string::npos) << *note;
}

TEST(ShmLeaked, ListsWhatADeadProcessLeftWhereHardlyRoomIsLeft) {
  const auto findings = asked("shm-leaked", story(false, 95).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(std::get<std::vector<std::string>>(findings[0].details.at("paths")).at(0),
            "/dev/shm/torch_1_2");
}

TEST(ShmLeaked, IsSilentWhileTheMakerLives) {
  EXPECT_TRUE(asked("shm-leaked", story(true, 95).build()).empty());
}

JobBuilder after_the_job(bool left) {
  return job().ranks(2).exited(0, 0).exited(1, 0).ended().fact(
      "shm-segment",
      {{"path", std::string("/dev/shm/tokens-9")},
       {"bytes", std::int64_t{1} << 26},
       {"recorded", true},
       {"left_behind", left},
       {"file", std::string("/home/u/cache.py")},
       {"line", std::int64_t{12}},
       {"function", std::string("fill")}},
      1, pid_of(1));
}

TEST(ShmLeaked, NamesWhoMadeWhatTheEndedJobLeft) {
  const auto findings = asked("shm-leaked", after_the_job(true).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits.said(), "rank 1");
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].file, "/home/u/cache.py");
  EXPECT_NE(findings[0].fix.find("rm /dev/shm/tokens-9"), std::string::npos);
}

TEST(ShmLeaked, IsSilentWhenTheSegmentWasRemovedOrIsUsed) {
  EXPECT_TRUE(asked("shm-leaked", after_the_job(false).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
