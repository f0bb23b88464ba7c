// SPDX-License-Identifier: Apache-2.0
#include "collector/recording/recording.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::recording {
namespace {

using model::JobModel;

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kFirstFrame = 16;

/// A job that fills more than one frame.
JobModel large_job() {
  JobModel job =
      tests::job().ranks(4).all_reduce(tests::kAll, 1, 1024).seconds_without_progress(40).build();
  std::string noise;
  std::uint32_t state = 7;
  while (noise.size() < (std::size_t{6} << 20U)) {
    state = state * 1664525U + 1013904223U;
    noise.push_back(static_cast<char>('a' + (state >> 24U) % 26U));
  }
  job.logs.push_back({.rank = 1, .text = noise});
  return job;
}

std::string error_of(std::string_view bytes) {
  const auto loaded = load(bytes, "x.ddpd");
  return loaded ? "" : loaded.error().what;
}

TEST(Recording, GivesBackWhatWasSaved) {
  const JobModel job = large_job();
  const auto loaded = load(save(job), "x.ddpd");
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_EQ(loaded->world_size, 4);
  EXPECT_EQ(loaded->seconds_without_progress, 40);
  ASSERT_EQ(loaded->logs.size(), 1U);
  EXPECT_EQ(loaded->logs[0].text, job.logs[0].text);
  EXPECT_EQ(save(*loaded), save(job));
}

TEST(Recording, OfTheSameJobIsTheSameBytes) {
  EXPECT_EQ(save(large_job()), save(large_job()));
}

TEST(Recording, KeepsThatProgressIsUnknown) {
  JobModel job = large_job();
  job.progress = model::Progress::kUnknown;
  job.observations.push_back(job.observations.front());
  job.observations.back().time += 30;
  const auto loaded = load(save(job), "x.ddpd");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->progress, model::Progress::kUnknown);
}

TEST(Recording, CutAnywhereIsSaidToBeCut) {
  const std::string whole = save(large_job());
  for (const std::size_t size : {std::size_t{8}, std::size_t{15}, std::size_t{16}, std::size_t{19},
                                 std::size_t{23}, std::size_t{100}, whole.size() - 1}) {
    EXPECT_NE(error_of(std::string_view(whole).substr(0, size)).find("x.ddpd is cut short"),
              std::string::npos)
        << size;
  }
}

TEST(Recording, OfAForeignVersionNamesBothNumbers) {
  std::string bytes = save(large_job());
  bytes[kVersionAt] = 9;
  EXPECT_EQ(error_of(bytes), "x.ddpd is a recording of version 9; this ddpdoctor reads 1");
}

TEST(Recording, WithOneBitFlippedIsDamaged) {
  const std::string whole = save(large_job());
  for (std::size_t at = kFirstFrame; at < whole.size(); at += whole.size() / 50) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    EXPECT_NE(error_of(bytes), "") << "byte " << at;
  }
}

TEST(Recording, DoesNotBelieveSizes) {
  std::string bytes = save(large_job());
  for (std::size_t i = 4; i < 8; ++i) {
    bytes[kFirstFrame + i] = '\xff';
  }
  EXPECT_NE(error_of(bytes), "");
}

TEST(Recording, ThatIsNoneIsSaidToBeNone) {
  EXPECT_EQ(error_of("{}"), "x.ddpd is no recording of ddpdoctor");
  EXPECT_EQ(error_of(""), "x.ddpd is no recording of ddpdoctor");
}

}  // namespace
}  // namespace ddpdoctor::recording
