// SPDX-License-Identifier: Apache-2.0
#include "viewer/live.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"
#include "viewer/layout.h"

namespace ddpdoctor::viewer {
namespace {

graph::LiveView four_ranks() {
  graph::LiveView view;
  view.title = "torchrun --nproc_per_node=4 train.py";
  view.world_size = 4;
  view.calls_per_second = 12.34;
  view.groups.push_back({.name = "default_pg",
                         .backend = "gloo",
                         .sequence = 1043,
                         .operation = "all_reduce",
                         .joined = {0, 1, 3},
                         .missing = {2}});
  for (int rank = 0; rank < 4; ++rank) {
    view.ranks.push_back({.rank = rank,
                          .pid = 100 + rank,
                          .doing = "all_reduce #1043 of default_pg",
                          .place = "train.py:88 in step",
                          .lag = 0.001 * rank * rank});
  }
  view.waits = {"ranks 0-1,3 wait for rank 2: all_reduce #1043 of default_pg"};
  return view;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    out += line + "\n";
  }
  return out;
}

TEST(LiveLines, TellRanksGroupsWaitsAndLag) {
  const std::string text = joined(live_lines(four_ranks(), {}));
  for (const char* part : {"4 ranks", "12.3 events/s", "all_reduce #1043  joined 0-1,3  missing 2",
                           "train.py:88 in step", "9.0 ms", "ranks 0-1,3 wait for rank 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(LiveLines, TellTheVerdictAndItsFixInWholeSentences) {
  graph::LiveView view = four_ranks();
  view.verdict = graph::LiveVerdict{.summary = "rank 2 has not called all_reduce #1043",
                                    .about = "missing-rank, certain",
                                    .fix = "Check why load() does not return on rank 2."};
  const std::string text = joined(live_lines(view, {.width = 40}));
  EXPECT_NE(text.find("error: rank 2 has not called"), std::string::npos) << text;
  EXPECT_NE(text.find("certain]"), std::string::npos) << text;
  EXPECT_NE(text.find("fix: Check why load()"), std::string::npos) << text;
}

TEST(LiveLines, TellThatRanksCalledDifferentOperations) {
  graph::LiveView view = four_ranks();
  view.groups.front().operations = {{"all_reduce", {2}}, {"barrier", {0, 1, 3}}};
  const std::string text = joined(live_lines(view, {}));
  EXPECT_NE(text.find("#1043: all_reduce on rank 2, barrier on ranks 0-1,3"), std::string::npos)
      << text;
}

TEST(LiveLines, FitEveryWidthAndHeight) {
  for (const std::size_t width : {1U, 20U, 40U, 69U, 70U, 100U, 300U}) {
    for (const std::size_t height : {1U, 3U, 8U, 24U, 0U}) {
      const auto lines = live_lines(four_ranks(), {.width = width, .height = height});
      EXPECT_TRUE(height == 0 || lines.size() <= height) << width << "x" << height;
      for (const std::string& line : lines) {
        EXPECT_LE(display_width(line), width) << width << "x" << height << ": " << line;
      }
    }
  }
}

TEST(LiveLines, ManyRanksAreCountedWhenTheScreenIsSmall) {
  graph::LiveView view = four_ranks();
  for (int rank = 4; rank < 1000; ++rank) {
    view.ranks.push_back({.rank = rank, .pid = rank, .doing = "computing", .place = {}, .lag = {}});
  }
  const auto lines = live_lines(view, {.width = 80, .height = 20});
  EXPECT_LE(lines.size(), 20U);
  EXPECT_NE(joined(lines).find("more ranks"), std::string::npos);
  EXPECT_NE(joined(lines).find("ranks 0-1,3 wait"), std::string::npos);
}

TEST(LiveLines, HostileNamesCannotSteerTheTerminal) {
  graph::LiveView view = four_ranks();
  const std::string hostile =
      "\x1b[2J\x07\r\nroot# \xff\xfe\x9b"
      "31m";
  view.title = hostile;
  view.groups.front().name = hostile;
  view.groups.front().operation = hostile;
  view.ranks.front().doing = hostile;
  view.ranks.front().place = hostile;
  view.waits.push_back(hostile);
  view.notes.push_back(hostile);
  for (const std::string& line : live_lines(view, {.width = 60, .height = 30})) {
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    })) << line;
    EXPECT_EQ(line.find("\xff"), std::string::npos);
    EXPECT_LE(display_width(line), 60U);
  }
}

TEST(LiveLines, AJobThatIsStartingSaysSo) {
  graph::LiveView view = four_ranks();
  view.ranks.clear();
  const std::string text = joined(live_lines(view, {}));
  EXPECT_NE(text.find("no rank yet"), std::string::npos) << text;
  EXPECT_EQ(text.find("late by"), std::string::npos) << text;
}

TEST(LiveLines, AnEmptyViewIsAHeadingAndNoCrash) {
  EXPECT_FALSE(live_lines({}, {.width = 10, .height = 2}).empty());
}

TEST(Bar, IsAShareAndNeverLonger) {
  EXPECT_EQ(bar(0, 4), "");
  EXPECT_EQ(bar(0.5, 4), "██");
  EXPECT_EQ(bar(9, 4), "████");
  EXPECT_EQ(bar(-1, 4), "");
}

TEST(LagText, IsShort) {
  EXPECT_EQ(lag_text(0.0012), "1.2 ms");
  EXPECT_EQ(lag_text(0.25), "250 ms");
  EXPECT_EQ(lag_text(-1), "?");
}

}  // namespace
}  // namespace ddpdoctor::viewer
