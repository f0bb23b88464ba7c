// SPDX-License-Identifier: Apache-2.0
// p2p-deadlock: a message that one rank of several left out, a loop that one stage of a pipeline
// has left, two ranks that NCCL could not connect.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kMail =
    "def turn(self):\n    found = self.search()\n    if found:\n        self.give(found)\n\n"
    "def give(found):\n    dist.send(found, 0)\n\ndef take(who):\n    dist.recv(box, who)\n\n"
    "def main():\n    for _ in range(9):\n        dist.broadcast(w, 0)\n        turn(self)\n";

/// Rank 0 waits for a message of rank 1; ranks 1 and 2 are in the next broadcast. Rank 2 has sent
/// its own message if `others_gave`.
JobBuilder round_of_mail(bool others_gave) {
  JobBuilder builder = job();
  builder.ranks(3).source("/srv/mail.py", kMail);
  const std::string all = "main@/srv/mail.py~dist.broadcast";
  builder.stack(0, in("recv", "py:take@/srv/mail.py:10 | py:main@/srv/mail.py:15", "src=1"))
      .stack({1, 2}, in("broadcast", "py:" + all));
  for (const model::Rank rank : {0, 1, 2}) {
    builder.call(rank, {.operation = "broadcast", .sequence = 4, .site = all, .time = 10.0});
  }
  builder.call({1, 2}, {.operation = "broadcast", .sequence = 5, .site = all, .time = 12.0});
  const auto gave = [](std::int64_t sequence, double time) {
    return tests::CallStory{
        .operation = "send",
        .sequence = sequence,
        .site = "give@/srv/mail.py:7 | turn@/srv/mail.py:4 | main@/srv/mail.py:15",
        .peer = 0,
        .state = model::CallState::kCompleted,
        .time = time};
  };
  builder.call(1, gave(3, 9.0));
  if (others_gave) {
    builder.call(2, gave(4, 11.0));
  }
  builder.call(0, {.operation = "recv",
                   .sequence = 7,
                   .site = "take@/srv/mail.py:10 | main@/srv/mail.py:15",
                   .peer = 1,
                   .state = model::CallState::kStarted,
                   .time = 11.0});
  return builder;
}

TEST(LeftOutMessage, BlamesThePeerThatLeftOutItsMessage) {
  const Findings findings = asked("p2p-deadlock", round_of_mail(true).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3) << findings[0].summary;
  EXPECT_TRUE(findings[0].summary.starts_with("`found` (mail.py:3)")) << findings[0].summary;
}

/// The same without records of messages; `third` is the stack of rank 2.
JobBuilder mail_on_stacks(const char* third) {
  const std::string all = "main@/srv/mail.py~dist.broadcast";
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/mail.py", kMail)
      .stack(0, in("recv", "py:take@/srv/mail.py:10 | py:main@/srv/mail.py:15", "src=1"))
      .stack(1, in("broadcast", "py:" + all))
      .stack(2, third);
  for (const model::Rank rank : {0, 1, 2}) {
    builder.call(rank, {.operation = "broadcast", .sequence = 4, .site = all, .time = 10.0});
  }
  builder.call(1, {.operation = "broadcast", .sequence = 5, .site = all, .time = 12.0});
  return builder;
}

TEST(LeftOutMessage, ARankThatWaitsInTheMessageShowsWhichPeerLeftItOut) {
  const std::string gives = in(
      "send", "py:give@/srv/mail.py:7 | py:turn@/srv/mail.py:4 | py:main@/srv/mail.py:15", "dst=0");
  const Findings findings = asked("p2p-deadlock", mail_on_stacks(gives.c_str()).build());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1})) << findings[0].summary;
  EXPECT_EQ(findings[0].locations.at(0).line, 3) << findings[0].summary;
  const Findings alone = asked("p2p-deadlock", mail_on_stacks("py:main@/srv/mail.py:13").build());
  EXPECT_TRUE(alone.empty() || alone[0].culprits == model::RankSet{0});
}

TEST(LeftOutMessage, BlamesNoPeerIfNoRankMadeTheMessage) {
  const Findings findings = asked("p2p-deadlock", round_of_mail(false).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
}

constexpr const char* kStages =
    "def step(self, n):\n    for i in range(n):\n        ahead(i)\n"
    "    for i in range(n):\n        back(i)\n";

JobBuilder stages(const std::string& source) {
  JobBuilder builder = job();
  builder.ranks(2)
      .source("/srv/stages.py", source)
      .stack(0, in("recv", "py:back@/srv/wire.py:5 | py:step@/srv/stages.py:5", "src=1"))
      .stack(1, in("recv", "py:ahead@/srv/wire.py:9 | py:step@/srv/stages.py:3", "src=0"));
  return builder;
}

TEST(LeftOutMessage, NamesTheLoopOfAPipelineThatOneStageHasLeft) {
  const Findings findings = asked("p2p-deadlock", stages(kStages).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_NE(findings[0].summary.find("rank 0 left `for i in range(n)` (stages.py:2)"),
            std::string::npos)
      << findings[0].summary;
}

TEST(LeftOutMessage, ALoopWhoseLengthDependsOnTheRankIsNoMistake) {
  std::string source = kStages;
  source.replace(source.find("range(n)"), 8, "range(2 - dist.get_rank())");
  const Findings findings = asked("p2p-deadlock", stages(source).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

/// Both ranks exited with NCCL's error; `one` and `other` are the operations that they called last.
JobBuilder refused(const std::string& one, const std::string& other) {
  JobBuilder builder = job();
  builder.ranks(2).exited(kAll, 1).log(
      0,
      "torch.distributed.DistBackendError: NCCL error\nncclSocketInit: connecting to address "
      " with family 1 is neither AF_INET(2) nor AF_INET6(10)\n");
  builder.call(0, {.operation = one,
                   .sequence = 1,
                   .site = "swap@/srv/link.py:3",
                   .peer = 1,
                   .state = model::CallState::kFailed});
  builder.call(1, {.operation = other,
                   .sequence = 1,
                   .site = "swap@/srv/link.py:3",
                   .peer = 0,
                   .state = model::CallState::kFailed});
  return builder;
}

TEST(LeftOutMessage, ExplainsTheAddressThatNcclCouldNotRead) {
  const Findings findings = asked("p2p-deadlock", refused("send", "send").build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(asked("p2p-deadlock", refused("send", "recv").build()).empty());
  const Findings plain = asked("master-unreachable", refused("send", "recv").build());
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_LE(plain[0].confidence, Confidence::kLikely);
}

}  // namespace
}  // namespace ddpdoctor::detectors
