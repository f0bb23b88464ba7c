// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3).stack({0, 1}, in("all_reduce", "py:main@/srv/train.py:9")).unobserved(2);
  return builder;
}

TEST(Undetermined, SaysWhatToCaptureOfTheUnobservedRank) {
  const Findings findings = asked("undetermined", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].fix.find("on the node of rank 2"), std::string::npos);
}

TEST(Undetermined, NamesTheRankWhoseWatchdogStoodStill) {
  model::JobModel log;
  log.facts.push_back({.rank = 2, .pid = {}, .kind = "watchdog-stuck", .fields = {}});
  log.facts.back().fields["seconds"] = std::int64_t{480};
  const Findings findings = asked("undetermined", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(Undetermined, IsNeverMoreThanPossible) {
  EXPECT_TRUE(nothing_likely(asked("undetermined", told().build())));
}

TEST(Undetermined, IsSilentWhenNobodyWaitsOrTheJobMoves) {
  EXPECT_TRUE(asked("undetermined", moving(told().build())).empty());
  EXPECT_TRUE(asked("undetermined", job().ranks(2).python(kAll, kTrain, 3, "f").build()).empty());
}

TEST(Undetermined, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("undetermined", told().build())),
            essence(asked("undetermined", records_reversed(told().build()))));
}

TEST(Undetermined, SaysWhatToCaptureWhenNothingCanBeRead) {
  JobBuilder builder = job();
  builder.ranks(2).unobserved(kAll).progress(model::Progress::kUnknown);
  const Findings findings = asked("undetermined", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("Run `ddpdoctor attach PID`"), std::string::npos);
}

TEST(Undetermined, SaysThatEverybodyWaitsForTheGpu) {
  constexpr const char* kItem =
      "native:cudaStreamSynchronize | native:at::native::item | py:train@/srv/train.py:9";
  const Findings findings = asked("undetermined", job().ranks(2).stack(kAll, kItem).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("are waiting for their GPUs"), std::string::npos);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(asked("undetermined", moving(job().ranks(2).stack(kAll, kItem).build())).empty());
}

TEST(Undetermined, NamesTheRankWhoseWatchdogEndedItsWait) {
  auto builder = job();
  builder.fact("watchdog-timeout", {{"operation", std::string("all_reduce")}, {"seconds", 1807.4}},
               1);
  model::JobModel log = builder.log({}, "text").build();
  log.ended = true;
  const Findings findings = asked("undetermined", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("rank 1 waited in all_reduce for 30 min 7 s"),
            std::string::npos);
}

TEST(Undetermined, AsksForASecondLook) {
  const Findings findings =
      asked("undetermined", job().ranks(2).stack(kAll, kInBarrier).looked_once().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("again after 10 s"), std::string::npos);
  EXPECT_EQ(findings[0].summary.find("nothing moves"), std::string::npos);
}

constexpr std::string_view kLost =
    "Traceback (most recent call last):\n  File \"/srv/train.py\", line 26, in main\n    "
    "dist.all_reduce(t)\nRuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer "
    "[127.0.0.1]:25004.\n";

TEST(Undetermined, TellsWhoLostAPeerAndWhoLeftNoErrorFile) {
  model::JobModel files;
  files.ended = true;
  for (const model::Rank rank : {0, 1}) {
    files.facts.push_back({.rank = rank, .pid = {}, .kind = "error-file", .fields = {}});
    files.logs.push_back({.rank = rank, .text = std::string(kLost)});
  }
  const Findings alone = asked("undetermined", files);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_TRUE(alone[0].culprits.empty());
  EXPECT_NE(alone[0].summary.find("no file shows which rank exited first"), std::string::npos);
  files.logs.push_back({.rank = 2, .text = {}});
  const Findings findings = asked("undetermined", files);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].summary,
            "ranks 0 and 1 lost their connection to another rank; rank 2 left no error file");
  EXPECT_EQ(findings[0].locations.at(0).line, 26);
  files.logs.push_back({.rank = 3, .text = {}});  // one of the two was ended because of the other
  EXPECT_TRUE(asked("undetermined", files).at(0).culprits.empty());
  files.logs.back().text =
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 3, "
      "in f\nKeyError: 3\n";
  EXPECT_TRUE(asked("undetermined", files).empty()) << "it raised";
}

TEST(Undetermined, DoesNotMindLostPeersOfAJobThatWasSeenToEndWell) {
  const auto told = [](int status) {
    model::JobModel log;
    log.ended = true;
    log.logs.push_back({.rank = 0, .text = std::string(kLost)});
    model::Process process;
    process.rank = 0;
    process.role = model::Role::kRank;
    process.state = 'X';
    process.exit = model::Exit{.status = status, .signal = {}};
    log.observations.push_back({.time = 0, .processes = {process}});
    return log;
  };
  EXPECT_TRUE(asked("undetermined", told(0)).empty());
  EXPECT_EQ(asked("undetermined", told(1)).size(), 1U);
}

TEST(Undetermined, QuotesWhatItDidNotUnderstandOfALog) {
  model::JobModel told;
  told.coverage.observed.emplace_back("the log job.txt");
  told.logs.push_back(
      {.rank = {}, .text = "fine\nERROR a\nERROR a\nwarning: b\nfailed c\nerror d\n"});
  const auto findings = asked("undetermined", told);
  ASSERT_EQ(findings.size(), 1U);
  ASSERT_EQ(findings[0].evidence.size(), 4U);
  EXPECT_EQ(findings[0].evidence[1].text, "log: ERROR a");
  EXPECT_EQ(findings[0].evidence[3].text, "log: failed c");
  EXPECT_EQ(findings[0].fix.find("again after"), std::string::npos) << findings[0].fix;
}

TEST(Undetermined, SaysOfADumpOfOneProcessWhatItWaitsFor) {
  JobBuilder builder = job();
  builder.ranks(1).stack(
      0, "py:_try_get_data@torch/utils/data/dataloader.py:1310 | py:fetch@/srv/load.py:455");
  model::JobModel told = builder.build();
  told.progress = model::Progress::kUnknown;
  EXPECT_TRUE(asked("undetermined", told).empty()) << "a live one gets a second look";
  for (model::Process& process : told.observations.back().processes) {
    process.threads.at(0).capture = std::string(model::kDumpedFrom) + "py-spy";
  }
  const auto findings = asked("undetermined", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 455);
}

TEST(Undetermined, ARankThatTimedOutInTheStoreWaitedForTheOneThatSetsTheKey) {
  const auto told = [](const std::string& source) {
    model::JobModel log;
    log.ended = true;
    log.logs.push_back(
        {.rank = 5,
         .text =
             "Traceback (most recent call last):\n  File \"/srv/train.py\", line 20, in main\n"
             "    next(iter(loader))\n  File \"/opt/lib/python3.9/site-packages/torch/utils/data/"
             "dataloader.py\", line 567, in _get_shared_seed\n    " +
             source + "\nRuntimeError: Socket Timeout\n"});
    return asked("undetermined", log);
  };
  const Findings findings = told("store.wait([_share_dist_seed])");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, (model::RankSet{5}));
  EXPECT_NE(findings[0].summary.find("waited in the store (dataloader.py:567, _get_shared_seed)"),
            std::string::npos);
  const Finding other = told("recv(peer)").at(0);
  EXPECT_TRUE(other.waiting.empty());
  EXPECT_NE(other.summary.find("rank 5 waited for another rank until the timeout"),
            std::string::npos);
}

TEST(Undetermined, IsSilentIfNcclDestroyedEveryCommunicatorWithoutTrouble) {
  const auto told = [](bool closed, const std::string& line) {
    return asked("undetermined", JobBuilder()
                                     .fact("nccl-setup", {{"finished", true}, {"closed", closed}})
                                     .log({}, "#  size  count  error\n" + line + "\n")
                                     .build());
  };
  EXPECT_TRUE(told(true, "a:7:7 [0] NCCL INFO NET/Plugin: dlerror=x.so: cannot open").empty());
  EXPECT_EQ(told(true, "training failed").size(), 1U);
  EXPECT_EQ(told(false, "done").size(), 1U);
}

TEST(Undetermined, ARankThatNoLineNamesIsToldWithItsPlace) {
  model::JobModel log;
  log.ended = true;
  log.logs.push_back(
      {.rank = {},
       .text =
           "Traceback (most recent call last):\n  File \"/srv/train.py\", line 20, in main\n"
           "    dist.all_reduce(x)\n  File \"/opt/lib/python3.8/site-packages/torch/distributed/"
           "distributed_c10d.py\", line 1169, in all_reduce\n    work.wait()\n"
           "RuntimeError: Socket Timeout\nKilling subprocess 71\n"
           "Traceback (most recent call last):\n  File \"/opt/lib/python3.8/site-packages/torch/"
           "distributed/launch.py\", line 340, in <module>\n    main()\n"
           "subprocess.CalledProcessError: Command '['train.py']' returned exit status 1.\n"});
  const Findings findings = asked("undetermined", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].locations.at(0).line, 20);
  EXPECT_NE(findings[0].summary.find("a rank waited for another rank until the timeout"),
            std::string::npos);
  EXPECT_TRUE(asked("rank-raised", log).empty()) << "a launcher is no rank";
}

/// One dump of one process whose main thread is at a line of its own.
model::JobModel dump_of_one(char state) {
  model::JobModel out =
      job().ranks(1).stack(0, "py:get_objects@ray/worker.py:309 | py:make@/srv/world.py:3").build();
  out.progress = model::Progress::kUnknown;
  out.observations.erase(out.observations.begin(), out.observations.end() - 1);
  for (model::Process& process : out.observations.back().processes) {
    process.threads.at(0).capture = std::string(model::kDumpedFrom) + "py-spy";
    process.threads.at(0).state = state;
  }
  return out;
}

TEST(Undetermined, NamesTheLineOfAProcessThatSleepsInADump) {
  const Findings findings = asked("undetermined", dump_of_one('S'));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
}

TEST(Undetermined, IsSilentIfADumpedProcessRunsOrItsStateIsUnknown) {
  EXPECT_TRUE(asked("undetermined", dump_of_one('R')).empty());
  EXPECT_TRUE(asked("undetermined", dump_of_one('?')).empty());
}

std::string first_summary(const Findings& findings) {
  return findings.empty() ? std::string() : findings[0].summary;
}

std::string summary_of_log(const std::string& text) {
  model::JobModel job;
  job.logs.push_back({.rank = {}, .text = text});
  return first_summary(asked("undetermined", job));
}

TEST(Undetermined, QuotesTheLastLineOfALogInWhichItKnowsNothing) {
  EXPECT_NE(summary_of_log("loading the model\nkey of the account (1 or 2): \n\n")
                .find("its last line: key of the account (1 or 2):"),
            std::string::npos);
}

TEST(Undetermined, QuotesTheLastStateOfAProgressBar) {
  EXPECT_NE(summary_of_log("epoch 1\n10%|#   |\r20%|##  | 2/10\r\n")
                .find("its last line: 20%|##  | 2/10"),
            std::string::npos);
}

TEST(Undetermined, AnEmptyLogHasNoLastLine) {
  EXPECT_EQ(summary_of_log("\n----\n"), "no stack and no recorded call of any rank is known");
}

/// One snapshot by py-spy of ranks at these lines.
model::JobModel dump_of(std::initializer_list<std::pair<int, const char*>> lines) {
  JobBuilder builder = job();
  builder.ranks(static_cast<int>(lines.size()));
  int rank = 0;
  for (const auto& [line, function] : lines) {
    builder.stack(rank++, std::string("py:") + function + "@/srv/world.py:" + std::to_string(line));
  }
  auto out = builder.build();
  out.progress = model::Progress::kUnknown;
  out.observations.erase(out.observations.begin(), out.observations.end() - 1);
  for (model::Process& process : out.observations.back().processes) {
    process.threads.at(0).capture = std::string(model::kDumpedFrom) + "py-spy";
  }
  return out;
}

TEST(Undetermined, SaysInTheFirstLineThatAllRanksAreAtOnePlace) {
  const Findings one = asked("undetermined", dump_of({{3, "make"}, {3, "make"}, {3, "make"}}));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(one[0].summary.starts_with("ranks 0-2 are all in make (world.py:3)"));
  EXPECT_EQ(one[0].locations.size(), 1U);
  const Findings two = asked("undetermined", dump_of({{3, "make"}, {3, "make"}, {7, "save"}}));
  ASSERT_EQ(two.size(), 1U);
  EXPECT_TRUE(two[0].summary.starts_with("ranks 0 and 1 sleep at world.py:3, rank 2 sleeps"));
  EXPECT_EQ(two[0].locations.size(), 2U);
}

TEST(Undetermined, NamesAnAbortThatWaitsBehindTheSameGpu) {
  constexpr const char* kItem =
      "native:cudaStreamSynchronize | native:at::native::item | py:train@/srv/train.py:9";
  const auto with = [&](const char* stack) {
    return asked("undetermined",
                 job().ranks(1).stack(kAll, kItem).thread(0, {.stack = stack}).build());
  };
  const Findings found = with(
      "native:cudaStreamSynchronize | native:commDestroySync | "
      "native:ncclCommAbort");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].summary.find("ncclCommAbort (thread "), std::string::npos);
  const Findings other = with("native:poll | native:ncclCommAbort");
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].summary.find("ncclCommAbort"), std::string::npos);
}

TEST(Undetermined, SaysThatAServerAnswersOnlyIfItProduces) {
  const auto summary = [](const std::string& log) {
    return first_summary(asked_of_log("undetermined", log));
  };
  const std::string posted = "INFO: 10.0.0.1:4 - \"POST /v1/completions HTTP/1.1\" 200 OK\n";
  EXPECT_NE(summary(posted).find("answered a request"), std::string::npos);
  EXPECT_NE(summary(posted + "Avg generation throughput: 7.5 tokens/s, Running: 1 reqs\n")
                .find("generated 7.5 tokens/s"),
            std::string::npos);
  EXPECT_EQ(summary(posted + "Avg generation throughput: 0.0 tokens/s, Running: 3 reqs\n")
                .find("the server"),
            std::string::npos);
  EXPECT_EQ(summary("INFO: 10.0.0.1:4 - \"GET /health HTTP/1.1\" 200 OK\n").find("the server"),
            std::string::npos);
}

TEST(Undetermined, IsSilentOnNcclTestsThatEndWell) {
  const std::string run =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor)\n"
      "           8             2   float     sum   1311.5    0.80    1.40  4e-07\n";
  const std::string summary =
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.6629 \n#\n";
  EXPECT_TRUE(asked_of_log("undetermined", run + summary).empty());
  EXPECT_FALSE(asked_of_log("undetermined", run).empty());
  EXPECT_FALSE(asked_of_log("undetermined", run + summary + run).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
