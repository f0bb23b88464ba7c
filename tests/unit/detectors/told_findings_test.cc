// SPDX-License-Identifier: Apache-2.0
// Findings from known messages: what they rest on, and the parts of their summaries.
#include "collector/detectors/evidence/known_exceptions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

std::vector<ToldFinding> told(std::string_view kind, const std::string& text) {
  return told_by_text(graph::examine(job().log({}, text).build()), kind);
}

const std::string kTorch = "[W1120 10:00:03.1 socket.cpp:752] [c10d] The ";
const std::string kUnknownName =
    kTorch + "IPv6 network addresses of (n0, 29500) cannot be retrieved (gai error: -2 - x).\n";
const std::string kTimedOut =
    kTorch + "client socket has timed out after 60000ms while trying to connect to (n0, 29500).\n";

TEST(ToldFinding, KnowsAllMessagesOnWhichItRests) {
  const auto warned = told("master-unreachable", kUnknownName);
  ASSERT_EQ(warned.size(), 1u);
  EXPECT_EQ(warned[0].messages, std::set{Message::kNoAddress});
  EXPECT_TRUE(warned[0].finding.summary.empty());
  const auto both = told("master-unreachable", kUnknownName + kTimedOut);
  ASSERT_EQ(both.size(), 1u);
  EXPECT_TRUE(both[0].messages.contains(Message::kCannotReach));
}

TEST(ToldFinding, IsSummarizedFromItsParts) {
  auto all = told("master-unreachable", kTimedOut);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].says, Message::kCannotReach);
  all[0].did += " at n0:29500";
  all[0].place = " at train.py:3 in main";
  EXPECT_EQ(summarized(all[0]).summary,
            "a process cannot reach the rendezvous at n0:29500 at train.py:3 in main");
  all[0].finding.summary = "no process serves the rendezvous";
  EXPECT_EQ(summarized(all[0]).summary, "no process serves the rendezvous");
}

const std::string kActor =
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    "\tclass_name: Trainer\n\tpid: 44012\n\tip: 10.1.1.5\n";

TEST(ToldFinding, OfRayNamesTheActorOnlyWhereItTellsOfOne) {
  const auto lost = asked_of_log("dead-rank", kActor);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_NE(lost[0].summary.find("; it was "), std::string::npos) << lost[0].summary;
  const auto node = asked_of_log(
      "dead-rank", "ray.exceptions.LocalRayletDiedError: The task's local raylet died.\n" + kActor);
  ASSERT_EQ(node.size(), 1u);
  EXPECT_EQ(node[0].summary.find("; it was "), std::string::npos) << node[0].summary;
}

TEST(ToldFinding, OfADataLoaderKeepsTheSignalAndTakesThePlaceFromTorchsSecondReport) {
  const std::string signal =
      "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n\n";
  const std::string second =
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 9, in main\n"
      "    for x in loader:\n"
      "RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly\n";
  const auto joined = asked_of_log("dataloader-worker-killed", signal + second);
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_NE(joined[0].summary.find("to a signal (train.py:9, main)"), std::string::npos)
      << joined[0].summary;
  ASSERT_FALSE(joined[0].locations.empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
