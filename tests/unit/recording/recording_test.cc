// SPDX-License-Identifier: Apache-2.0
#include "collector/recording/recording.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
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

/// Many ranks in frames of one process or a few: a truncated recording loses some of them.
JobModel many_ranks() {
  JobModel job = tests::job()
                     .ranks(64)
                     .complete_history()
                     .history(tests::kAll, 1, 40)
                     .all_reduce({0, 1, 2, 3}, 41)
                     .stack(tests::kAll, "py:step@/srv/train.py:8 | py:main@/srv/train.py:30")
                     .build();
  std::stable_sort(job.collectives.begin(), job.collectives.end(),
                   [](const model::CollectiveCall& a, const model::CollectiveCall& b) {
                     return a.rank < b.rank;
                   });
  for (model::Process& process : job.observations.back().processes) {
    process.problems.emplace_back(4000, 'x');
  }
  job.logs.push_back({.rank = 1, .text = "the end"});
  return job;
}

TEST(Recording, CutBeforeAnyFrameIsRefused) {
  const std::string whole = save(large_job());
  for (const std::size_t size : {std::size_t{8}, std::size_t{15}, std::size_t{16}, std::size_t{19},
                                 std::size_t{23}, std::size_t{100}}) {
    EXPECT_NE(error_of(std::string_view(whole).substr(0, size)).find("x.ddpd is cut short"),
              std::string::npos)
        << size;
  }
}

TEST(Recording, CutAnywhereIsRefusedOrSaysWhatIsMissing) {
  const JobModel job = many_ranks();
  const std::string whole = save(job);
  std::size_t rescued = 0;
  for (std::size_t size = 1; size < whole.size(); size += 1 + whole.size() / 400) {
    const auto loaded = load(std::string_view(whole).substr(0, size), "x.ddpd");
    if (!loaded) {
      continue;
    }
    ++rescued;
    ASSERT_FALSE(loaded->coverage.warnings.empty()) << size;
    EXPECT_NE(loaded->coverage.warnings.back().find("x.ddpd is cut short"), std::string::npos);
    EXPECT_EQ(loaded->world_size, 64);
    const bool calls_are_lost = loaded->collectives.size() < job.collectives.size();
    EXPECT_TRUE(!calls_are_lost || !model::facts(*loaded, "recording-cut").empty()) << size;
  }
  EXPECT_GT(rescued, 100U);
}

TEST(Recording, CutAmongCallsKeepsRanksWhoseCallsAreAllThere) {
  const std::string whole = save(many_ranks());
  bool some = false;
  for (std::size_t size = whole.size() / 2; size < whole.size(); size += 97) {
    const auto loaded = load(std::string_view(whole).substr(0, size), "x.ddpd");
    if (!loaded || loaded->collectives.empty() || loaded->logs.size() == 1) {
      continue;
    }
    some = true;
    EXPECT_FALSE(loaded->history_complete);
    std::map<model::Rank, std::size_t> calls;
    for (const model::CollectiveCall& call : loaded->collectives) {
      ++calls[call.rank];
    }
    for (const auto& [rank, count] : calls) {
      EXPECT_EQ(count, rank < 4 ? 41U : 40U) << "rank " << rank << " of " << size;
    }
  }
  EXPECT_TRUE(some);
}

TEST(Recording, CutAmongProcessesLeavesTheOthersUnobserved) {
  JobModel job = many_ranks();
  job.observations.erase(job.observations.begin());
  const std::string whole = save(job);
  bool some = false;
  for (std::size_t size = 100; size < whole.size(); size += 31) {
    const auto loaded = load(std::string_view(whole).substr(0, size), "x.ddpd");
    if (!loaded || loaded->observations.empty()) {
      continue;
    }
    const model::RankSet seen = model::ranks_seen(*loaded);
    some = some || seen.size() < 64;
    EXPECT_EQ(seen.united(loaded->coverage.unobserved_ranks).size(), 64U) << size;
  }
  EXPECT_TRUE(some);
}

TEST(Recording, WithZerosForItsEndIsDamagedNotWhole) {
  std::string bytes = save(many_ranks());
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2), bytes.end(), '\0');
  const auto loaded = load(bytes, "x.ddpd");
  ASSERT_TRUE(loaded) << loaded.error().what;
  EXPECT_NE(loaded->coverage.warnings.back().find("x.ddpd is damaged"), std::string::npos);
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
    const auto loaded = load(bytes, "x.ddpd");
    EXPECT_TRUE(!loaded || !loaded->coverage.warnings.empty()) << "byte " << at;
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
  EXPECT_EQ(error_of("{}"), "x.ddpd is not a recording of ddpdoctor");
  EXPECT_EQ(error_of(""), "x.ddpd is not a recording of ddpdoctor");
}

}  // namespace
}  // namespace ddpdoctor::recording
