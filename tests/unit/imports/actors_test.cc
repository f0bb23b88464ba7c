// SPDX-License-Identifier: Apache-2.0
// Labels of Ray, vLLM and SGLang, positions in a parallel layout, and logs as JSON.
#include "collector/imports/logs/actors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/coordinates.h"
#include "collector/imports/logs/json_log.h"
#include "collector/imports/logs/text_file.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

TEST(Coordinates, CountDataThenPipelineThenTensorParallelRanks) {
  const auto place = coordinates_of("DP1_PP0_TP3_EP7");
  EXPECT_EQ(place, (Coordinates{{"DP", 1}, {"PP", 0}, {"TP", 3}, {"EP", 7}}));
  EXPECT_TRUE(coordinates_of("TP3 done").empty());
  EXPECT_TRUE(coordinates_of("T3").empty());
  EXPECT_TRUE(coordinates_of("tp3").empty());
  std::set<Coordinates> places;
  for (const auto* const words : {"PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"}) {
    places.insert(coordinates_of(words));
  }
  EXPECT_EQ(ranks_of(places).at(coordinates_of("PP1 TP0")), 2);
}

TEST(Coordinates, WhoIsBehindOthersCanBeCountedOnlyWhenThoseAreKnown) {
  EXPECT_TRUE(ranks_of({coordinates_of("PP1 TP0")}).empty());
  EXPECT_TRUE(ranks_of({coordinates_of("PP0 TP0"), coordinates_of("PP1 TP1")}).empty());
  EXPECT_EQ(ranks_of({coordinates_of("PP0 TP3")}).at(coordinates_of("PP0 TP3")), 3);
  EXPECT_EQ(ranks_of({coordinates_of("DP7 EP7")}).at(coordinates_of("DP7 EP7")), 7);
}

TEST(Coordinates, DataParallelAttentionRepeatsTheTensorParallelRank) {
  const std::set<Coordinates> attention = {coordinates_of("DP0 TP0"), coordinates_of("DP1 TP1")};
  EXPECT_EQ(ranks_of(attention).at(coordinates_of("DP1 TP1")), 1);
  const std::set<Coordinates> replicas = {coordinates_of("DP0 TP0"), coordinates_of("DP0 TP1"),
                                          coordinates_of("DP1 TP0"), coordinates_of("DP1 TP1")};
  EXPECT_EQ(ranks_of(replicas).at(coordinates_of("DP1 TP0")), 2);
  EXPECT_TRUE(ranks_of({coordinates_of("TP0 EP0"), coordinates_of("TP0 EP1")}).empty());
}

TEST(Actors, AnActorsOtherLinesTellItsRank) {
  const Labels labels = with_actors_named(
      "(WorkerDict pid=97397, ip=10.0.0.4) [rank3]:[E1023 x.cpp:1] timeout\n"
      "(WorkerDict pid=97397, ip=10.0.0.4) Traceback (most recent call last):\n"
      "(WorkerDict pid=97397, ip=10.0.0.5) Traceback (most recent call last):\n"
      "(TaskRunner pid=7) step 1\n");
  EXPECT_NE(labels.text.find("\n[rank3]: Traceback"), labels.text.npos) << labels.text;
  EXPECT_NE(labels.text.find("\n(WorkerDict pid=97397, ip=10.0.0.5) Traceback"), labels.text.npos);
  EXPECT_NE(labels.text.find("\n(TaskRunner pid=7) step 1"), labels.text.npos);
}

TEST(Actors, WorkersOfVllmAreRanks) {
  const auto line = model::read_log_line(
      "(VllmWorker rank=5 pid=12231) ERROR 03-25 21:13:53 [multiproc_executor.py:374]   File "
      "\"x\"");
  EXPECT_EQ(line.rank, 5);
  EXPECT_EQ(line.text, "  File \"x\"");
  EXPECT_EQ(model::read_log_line("ERROR 05-27 23:44:35 core.py:708] a").text, "a");
  EXPECT_EQ(model::read_log_line("ERROR 05-27 of them").text, "ERROR 05-27 of them");
  const Labels labels = with_actors_named(
      "(Worker_PP0_TP0 pid=1) a\n(Worker_PP0_TP1 pid=2) b\n(Worker_PP1_TP0 pid=3) c\n"
      "(Worker_PP1_TP1 pid=4) d\n(EngineCore_DP0 pid=9) e\n");
  EXPECT_NE(labels.text.find("[rank2]: c\n"), labels.text.npos) << labels.text;
  EXPECT_NE(labels.text.find("(EngineCore_DP0 pid=9) e\n"), labels.text.npos);
  EXPECT_NE(labels.warning.find("rank 2 is PP1 TP0"), labels.warning.npos) << labels.warning;
}

TEST(Actors, TheTracebackBehindALabelOfSglangIsThatRanks) {
  const Labels labels = with_actors_named(
      "[2025-12-22 11:36:30 TP1 EP1] Scheduler hit an exception: Traceback (most recent call "
      "last):\n"
      "  File \"/app/scheduler.py\", line 2865, in run\n"
      "ValueError: no\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"/app/scheduler.py\", line 3, in run\n"
      "KeyError: 1\n"
      "[2025-12-22 11:36:31] INFO: done\n"
      "[2025-12-22 11:36:31 TP0 EP0] fine\n");
  EXPECT_NE(labels.text.find("[rank1]: ValueError: no\n"), labels.text.npos) << labels.text;
  EXPECT_NE(labels.text.find("[rank1]: KeyError: 1\n"), labels.text.npos);
  EXPECT_NE(labels.text.find("\n[2025-12-22 11:36:31] INFO: done\n"), labels.text.npos);
}

TEST(Actors, SentencesAreNoLabels) {
  EXPECT_TRUE(with_actors_named("training (epoch 3 pid=7) goes on\n").text.empty());
  EXPECT_TRUE(with_actors_named("[2025-12-22 11:36:30 TPX] a\n").text.empty());
  EXPECT_TRUE(with_actors_named("P0 P1 (a) [b]\n").text.empty());
}

TEST(Actors, ColoursAreNoPartOfALabel) {
  for (const std::string_view log : {"\x1b[36m(Worker_TP1 pid=4009)\x1b[0m ValueError: no\n",
                                     "[36m(Worker_TP1 pid=4009)[0m ValueError: no\n"}) {
    const auto job = read_log(log);
    EXPECT_NE(job.logs.at(0).text.find("[rank1]: ValueError: no"), std::string::npos)
        << job.logs.at(0).text;
  }
}

constexpr std::string_view kLines = "[rank5]: Traceback (most recent call last):\n[rank5]: E\n";

TEST(JsonLog, LinesOfContainersAreUnpacked) {
  const std::string docker =
      "{\"log\":\"[rank5]: Traceback (most recent call last):\\n\",\"stream\":\"stderr\"}\n"
      "{\"log\":\"[rank5]: E\",\"stream\":\"stderr\"}\n";
  EXPECT_TRUE(is_json_log(docker, "x"));
  EXPECT_EQ(json_log_text(docker), kLines);
  const std::string loki =
      "[{\"line\":\"[rank5]: Traceback (most recent call last):\",\"timestamp\":\"17\"},"
      "{\"line\":\"[rank5]: E\"}]";
  EXPECT_TRUE(is_json_log(loki, "x"));
  EXPECT_EQ(json_log_text(loki), kLines);
  const std::string answer =
      "{\"status\":\"success\",\"data\":{\"resultType\":\"streams\",\"result\":[{\"stream\":{},"
      "\"values\":[[\"1\",\"[rank5]: Traceback (most recent call last):\"],[\"2\",\"[rank5]: "
      "E\"]]}]}}";
  EXPECT_TRUE(is_json_log(answer, "x"));
  EXPECT_EQ(json_log_text(answer), kLines);
}

TEST(JsonLog, FieldsOfALoggerAreRankTimeAndTraceback) {
  const std::string log =
      "{\"timestamp\":\"2026-02-22T23:55:01Z\",\"level\":\"ERROR\",\"rank\":5,\"message\":"
      "\"failed\","
      "\"exc_info\":\"Traceback (most recent call last):\\n  File \\\"/app/t.py\\\", line 3, in "
      "f\\nValueError: no\"}\n";
  const auto text = json_log_text(log);
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("2026-02-22T23:55:01Z [rank5]: failed\n")) << *text;
  EXPECT_NE(text->find("2026-02-22T23:55:01Z [rank5]: ValueError: no\n"), text->npos);
}

TEST(JsonLog, SeveralContainersStayApart) {
  const auto text = json_log_text(
      "{\"log\":\"a\\n\",\"kubernetes\":{\"pod_name\":\"trainer-0\"}}\n"
      "{\"log\":\"b\",\"kubernetes\":{\"pod_name\":\"trainer-1\"}}\n"
      "{\"log\":\"c\\n\",\"kubernetes\":{\"pod_name\":\"trainer-1\"}}\n");
  EXPECT_EQ(text, "trainer-0 | a\ntrainer-1 | bc\n");
}

TEST(JsonLog, OtherDocumentsAreNone) {
  for (const std::string_view text :
       {"{\"schema\":\"ddpdoctor.capture/1\",\"job\":{}}", "{\"a\":1}\n{\"b\":2}\n", "[1,2]", "{",
        "[{\"pid\":1,\"os_thread_id\":2,\"message\":\"\"}]", "{\"log\":3}"}) {
    EXPECT_FALSE(is_json_log(text, "x")) << text;
  }
  EXPECT_FALSE(json_log_text("{\"a\":1}\n{\"b\":2}\n"));
  EXPECT_FALSE(json_log_text("[1,2]"));
  EXPECT_FALSE(json_log_text("{"));
}

TEST(Watchdog, OfWhomRayFoldedTheLinesNothingIsSaid) {
  std::string log;
  for (const int rank : {0, 1, 2, 4, 5, 6, 7}) {
    log += fmt::format(
        "(W pid={0}) [rank{0}]:[E1 x.cpp:1] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=26, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1) "
        "ran\n"
        "(W pid={0}) [rank{0}]:[E1 x.cpp:2] [PG ID 0 PG GUID 0(default_pg) Rank {0}] failure "
        "detected by watchdog at work sequence id: 26 PG status: last enqueued work: 26, last "
        "completed work: 25\n",
        rank);
  }
  EXPECT_NE(model::rank_process(read_log(log), 3), nullptr);
  const auto folded = read_log(log + "(W pid=9) bye [repeated 8x across cluster]\n");
  EXPECT_EQ(model::rank_process(folded, 3), nullptr);
}

}  // namespace
}  // namespace ddpdoctor::imports
