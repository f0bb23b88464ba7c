// SPDX-License-Identifier: Apache-2.0
// Nodes and a collector over the transport within one process. The test takes a node's snapshots,
// instead of supervise().
#include "collector/fleet/collect.h"

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collector/fleet/node_link.h"
#include "collector/fleet/subjects.h"
#include "collector/recording/recording.h"
#include "collector/transport/local.h"
#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

model::JobModel part_of(int rank) {
  model::JobModel job;
  job.world_size = 2;
  job.hosts = {"box"};
  model::Observation& look = job.observations.emplace_back();
  look.time = 2e9;
  model::Process& process = look.processes.emplace_back();
  process.host = "box";
  process.pid = 10 + rank;
  process.rank = rank;
  process.role = model::Role::kRank;
  process.threads.emplace_back().tid = process.pid;
  return job;
}

/// A node whose job has no rank that has started: its marks are empty, and it answers.
class Node {
 public:
  Node(transport::LocalServer& server, int rank)
      : link("job", "/nonexistent",
             {.connect = [&server](const std::string&)
                  -> base::Result<std::unique_ptr<transport::Transport>> {
               return server.connect();
             }}),
        looks_([this, rank] {
          while (!stop_) {
            if (link.wants_look()) {
              link.answer(part_of(rank));
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          }
        }) {}
  ~Node() {
    stop_ = true;
    looks_.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  Node(Node&&) = delete;
  Node& operator=(Node&&) = delete;

  NodeLink link;

 private:
  std::atomic<bool> stop_{false};
  std::thread looks_;
};

/// Waits until the server knows `count` nodes.
void wait_for_nodes(transport::LocalServer& server, std::size_t count) {
  const auto ear = server.connect();
  ASSERT_TRUE(ear->subscribe(subject("job", "marks.*")));
  ASSERT_TRUE(ear->replay(subject("job", "marks.*")));
  std::set<std::string> heard;
  while (heard.size() < count) {
    const auto packet = ear->next(std::chrono::seconds(30));
    ASSERT_TRUE(packet);
    heard.insert(packet->subject);
  }
}

TEST(Collector, OneLookJoinsAllNodes) {
  transport::LocalServer server;
  const Node one(server, 0);
  const Node two(server, 1);
  wait_for_nodes(server, 2);
  const auto connection = server.connect();
  std::optional<model::JobModel> seen;
  Collector collector(*connection, {.job = "job", .once = true},
                      {.judge = [&seen](model::JobModel job, const Suspicion&) {
                        seen = std::move(job);
                        return Verdict{};
                      }});
  ASSERT_TRUE(collector.run());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->observations.back().processes.size(), 2U);
  EXPECT_EQ(seen->hosts.size(), 2U);
}

TEST(Collector, TheLastCapturesOfNodesThatEndedAreTheReport) {
  transport::LocalServer server;
  const auto keeps = server.connect();
  ASSERT_TRUE(keeps->keep(subject("*", ">")));
  for (const int rank : {0, 1}) {
    Node node(server, rank);
    wait_for_nodes(server, static_cast<std::size_t>(rank) + 1);
    const model::JobModel last = part_of(rank);
    node.link.leave(&last, 0);
  }
  const auto late = server.connect();
  std::vector<Reason> reasons;
  std::size_t processes = 0;
  Collector collector(*late, {.job = "job"},
                      {.judge = [&](const model::JobModel& job, const Suspicion& why) {
                        reasons.push_back(why.reason);
                        processes = job.observations.back().processes.size();
                        return Verdict{};
                      }});
  ASSERT_TRUE(collector.run());
  EXPECT_EQ(reasons, std::vector<Reason>{Reason::kEnded});
  EXPECT_EQ(processes, 2U);
}

TEST(Collector, ForeignMessagesChangeNothing) {
  transport::LocalServer server;
  const Node one(server, 0);
  wait_for_nodes(server, 1);
  const auto stranger = server.connect();
  const auto shout = [&stranger](const std::string& word, const std::string& data) {
    (void)stranger->publish(subject("job", word), data, "job.nowhere");
  };
  std::atomic<bool> stop{false};
  std::thread noise([&] {
    NodeMarks false_name = told("other", 0, 1, 5, 1);
    while (!stop) {
      shout("marks.node9", "garbage");
      shout("marks.node9", write_marks(false_name));
      shout("marks.node8", write_marks(told("node8", 0, 1, 5, 1)).substr(0, 40));
      shout("ask", "not a session");
      shout("ask", "");
      shout("to.node9", "abcdefghabcdefgh go 1e999");
      shout("last.node9.0", "garbage\n");
      shout("lead", "");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const auto connection = server.connect();
  std::size_t processes = 0;
  Collector collector(*connection, {.job = "job", .once = true},
                      {.judge = [&](const model::JobModel& job, const Suspicion&) {
                        processes = job.observations.back().processes.size();
                        return Verdict{};
                      }});
  EXPECT_TRUE(collector.run());
  stop = true;
  noise.join();
  EXPECT_EQ(processes, 1U);
  EXPECT_EQ(collector.state().nodes().size(), 1U);
}

TEST(Collector, RanksOfANodeThatDoesNotAnswerAreNotObserved) {
  transport::LocalServer server;
  const Node one(server, 0);
  wait_for_nodes(server, 1);
  const auto connection = server.connect();
  const auto dead = server.connect();
  NodeMarks marks = told("dead", 1, 1, 5, 1);
  marks.world_size = 3;
  std::optional<model::RankSet> unobserved;
  Collector collector(*connection, {.job = "job", .once = true, .ask = {.gather = 0.1}},
                      {.judge = [&](const model::JobModel& job, const Suspicion&) {
                        unobserved = job.coverage.unobserved_ranks;
                        return Verdict{};
                      }});
  ASSERT_TRUE(collector.begin());
  ASSERT_TRUE(dead->publish(subject("job", "marks.dead"), write_marks(marks), {}));
  ASSERT_TRUE(collector.run());
  ASSERT_TRUE(unobserved);
  EXPECT_TRUE(unobserved->contains(1)) << "no answer";
  EXPECT_TRUE(unobserved->contains(2)) << "no node speaks of it";
}

TEST(Collector, ANodeThatFallsSilentWhileAllAreAskedIsNamedBeforeTheDiagnosis) {
  transport::LocalServer server;
  const Node living(server, 0);
  wait_for_nodes(server, 1);
  const auto dead = server.connect();
  const auto connection = server.connect();
  std::vector<std::string> said;
  std::vector<std::string> unobserved;
  bool done = false;
  Collector collector(*connection, {.job = "job", .limits = {.hang_timeout = 0.2, .silence = 0.6}},
                      {.judge =
                           [&](const model::JobModel& job, const Suspicion&) {
                             said.emplace_back("judged");
                             unobserved = job.coverage.unobserved;
                             done = true;
                             return Verdict{};
                           },
                       .notice = [&](const Suspicion& why) { said.push_back(why.text); },
                       .stop = [&done] { return done; }});
  ASSERT_TRUE(dead->keep(subject("*", "marks.*")));
  ASSERT_TRUE(
      dead->publish(subject("job", "marks.dead"), write_marks(told("dead", 5, 1, 3, 1)), {}));
  ASSERT_TRUE(collector.run());
  ASSERT_EQ(said.size(), 3U);
  EXPECT_TRUE(said[0].starts_with("no rank began a collective")) << said[0];
  EXPECT_TRUE(said[1].starts_with("no word from dead (rank 5)")) << said[1];
  EXPECT_EQ(said[2], "judged");
  ASSERT_FALSE(unobserved.empty());
  EXPECT_TRUE(unobserved.front().starts_with("dead: no word from it for")) << unobserved.front();
}

TEST(Collector, WithoutANameTheOnlyJobIsTheOne) {
  transport::LocalServer server;
  const Node one(server, 0);
  const auto connection = server.connect();
  Collector collector(*connection, {.wait = 30}, {});
  ASSERT_TRUE(collector.begin());
  EXPECT_EQ(collector.job(), "job");
}

TEST(Collector, SaysWhyNodesThatEndedEarlierAreUnknown) {
  transport::LocalServer server("the NATS server keeps nothing (JetStream): no space");
  const Node one(server, 0);
  const auto connection = server.connect();
  std::vector<std::string> warnings;
  Collector collector(*connection, {.job = "job", .once = true},
                      {.judge = [&](const model::JobModel& job, const Suspicion&) {
                        warnings = job.coverage.warnings;
                        return Verdict{};
                      }});
  ASSERT_TRUE(collector.run());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("no space; nodes that ended before"), std::string::npos);
  Collector alone(*connection, {.job = "other", .wait = 0.05}, {});
  const auto nobody = alone.run();
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().hint.find("no space"), std::string::npos);
}

TEST(Collector, NobodyIsWaitedForInVain) {
  transport::LocalServer server;
  const auto connection = server.connect();
  Collector collector(*connection, {.wait = 0.05}, {});
  EXPECT_FALSE(collector.run());
}

TEST(NodeLink, KeepsTheRecordingOfAFindingAndNotThatOfTheEnd) {
  transport::LocalServer server;
  Node one(server, 0);
  Node two(server, 1);
  wait_for_nodes(server, 2);
  const auto connection = server.connect();
  transport::ObjectStore& store = *connection->objects();
  EXPECT_TRUE(store.list()->empty());
  Collector collector(*connection, {.job = "job", .once = true},
                      {.judge = [](const model::JobModel&, const Suspicion&) {
                        return Verdict{.hang = false, .finding = "mismatched-op"};
                      }});
  ASSERT_TRUE(collector.run());
  while (store.list()->size() < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const std::string name = store.list()->front().name;
  EXPECT_TRUE(name.starts_with("job/") && name.ends_with(".ddpd")) << name;
  const std::string kept = *store.get(name);
  const auto recorded = recording::load(kept, name);
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->observations.back().processes.size(), 1U);
  const model::JobModel nothing;
  one.link.leave(&nothing, 0);
  two.link.leave(&nothing, 0);
  EXPECT_EQ(store.list()->size(), 2U);
  EXPECT_EQ(*store.get(name), kept);
}

TEST(NodeLink, WithoutAFindingKeepsTheRecordingOfTheEnd) {
  transport::LocalServer server;
  Node one(server, 0);
  wait_for_nodes(server, 1);
  const model::JobModel end = part_of(0);
  one.link.leave(&end, 0);
  const auto connection = server.connect();
  transport::ObjectStore& store = *connection->objects();
  ASSERT_EQ(store.list()->size(), 1U);
  EXPECT_TRUE(recording::load(*store.get(store.list()->front().name), "end"));
}

TEST(NodeLink, HearsThatSomebodyCollectsAndThatAHangWasFound) {
  transport::LocalServer server;
  const Node one(server, 0);
  wait_for_nodes(server, 1);
  EXPECT_FALSE(one.link.leads());
  const auto connection = server.connect();
  Collector collector(*connection, {.job = "job", .once = true},
                      {.judge = [](const model::JobModel&, const Suspicion&) {
                        return Verdict{.hang = true, .finding = {}};
                      }});
  ASSERT_TRUE(collector.run());
  while (!one.link.found_hang()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_TRUE(one.link.leads());
}

}  // namespace
}  // namespace ddpdoctor::fleet
