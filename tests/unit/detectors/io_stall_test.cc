// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "io-stall";
const std::string kOpens =
    "native:__open64@libc.so.6 | py:read_manifest@/srv/data.py:9 | py:main@/srv/train.py:20";

JobBuilder story() {
  return job().ranks(3).stack(kAll, kInBarrier).stack(0, kOpens);
}

TEST(IoStall, NamesThePipeAndTheLineThatOpensIt) {
  const auto findings = asked(
      kKind,
      story().waits(0, {.kind = "fifo", .target = "file:/data/manifest", .detail = {}}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("path")), "/data/manifest");
}

TEST(IoStall, KnowsAServerThatDoesNotAnswer) {
  const auto findings = asked(
      kKind,
      story()
          .stack(0, "native:recv@libc.so.6 | py:ask@/srv/data.py:14 | py:main@/srv/train.py:20")
          .waits(0, {.kind = "socket", .target = "address:10.0.0.9:80", .detail = {}})
          .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("10.0.0.9:80"), std::string::npos);
}

TEST(IoStall, KnowsUninterruptibleSleepInBothObservations) {
  const auto findings = asked(kKind, story().state(0, 'D', "rpc_wait_bit_killable").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(IoStall, IsSilentOnAThreadThatRanBetweenTheLooks) {
  auto told = story()
                  .state(0, 'D', "folio_wait_bit")
                  .waits(0, {.kind = "file", .target = "file:/out/part-1", .detail = "/out/part-1"})
                  .build();
  for (std::size_t i = 0; i < told.observations.size(); ++i) {
    for (model::Process& process : told.observations[i].processes) {
      process.threads.front().run_count = process.rank == 0 ? 40 + i : 7;
    }
  }
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(IoStall, IsSilentOnADiskThatWasSeenOnce) {
  auto told = story().state(0, 'D').build();
  told.observations.front().processes.at(1).threads.front().state = 'R';
  EXPECT_TRUE(asked(kKind, told).empty());
}

JobBuilder reads_from_command(bool moves) {
  return story()
      .stack(
          0,
          "native:read@libc.so.6 | py:Popen.communicate@/usr/lib/python3.11/subprocess.py:1209 | "
          "py:run@/usr/lib/python3.11/subprocess.py:550 | py:fetch@/srv/data.py:14")
      .waits(0,
             {.kind = "pipe", .target = "pid:7900", .detail = "reads fd 9; open in pid 7900 (aws)"})
      .process({.rank = 0,
                .pid = 7900,
                .threads = {{.stack = "native:poll@libc.so.6", .name = "aws", .moved = moves}}});
}

TEST(IoStall, BlamesTheLineThatReadsFromACommandThatSleeps) {
  model::JobModel told = reads_from_command(false).build();
  const auto same = [](model::JobModel& job, std::uint64_t first, std::uint64_t second) {
    for (std::size_t look = 0; look < job.observations.size(); ++look) {
      for (model::Process& process : job.observations[look].processes) {
        if (process.pid == 7900) {
          process.threads.front().run_count = look == 0 ? first : second;
        }
      }
    }
  };
  same(told, 3, 3);
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
  same(told, 3, 90);
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(IoStall, NamesTheFileWhoseLockIsHeld) {
  const auto findings =
      asked(kKind, story()
                       .stack(0, "native:flock@libc.so.6 | py:main@/srv/train.py:20")
                       .stack(1, "py:report@/srv/train.py:50")
                       .waits(0, {.kind = "file-lock",
                                  .target = "pid:" + std::to_string(pid_of(1)),
                                  .detail = "/data/shared.db, held by rank 1"})
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence.at(0).text.find("/data/shared.db"), std::string::npos);
}

TEST(IoStall, IsSilentWhileTheHolderOfTheLockGoesOn) {
  model::JobModel told = story()
                             .stack(0, "native:flock@libc.so.6 | py:main@/srv/train.py:20")
                             .stack(1, "native:clock_nanosleep | py:unpack@/srv/train.py:50")
                             .waits(0, {.kind = "file-lock",
                                        .target = "pid:" + std::to_string(pid_of(1)),
                                        .detail = "/data/node.lock, held by rank 1"})
                             .build();
  EXPECT_EQ(asked(kKind, told).size(), 1u);
  std::uint64_t count = 40;
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      if (!process.threads.empty()) {
        process.threads.front().run_count = process.rank == 1 ? ++count : 7;
      }
    }
  }
  EXPECT_TRUE(asked(kKind, told).empty());
}

TEST(IoStall, KnowsACommandThatWritesToAPipeOnlyTheRankCouldRead) {
  const auto told = [](const std::string& reader) {
    return story()
        .stack(0,
               "native:wait4@libc.so.6 | py:Popen.wait@/usr/lib/python3.11/subprocess.py:1264 | "
               "py:extract@/srv/data.py:23")
        .waits(0, {.kind = "process", .target = "pid:7900", .detail = {}})
        .process({.pid = 7900,
                  .ppid = pid_of(0),
                  .threads = {{.stack = "native:write@libc.so.6",
                               .waits_on = model::WaitsOn{.kind = "pipe",
                                                          .target = reader,
                                                          .detail = "writes fd 2 (pipe:[5])"}}}})
        .build();
  };
  const auto findings = asked(kKind, told("pid:" + std::to_string(pid_of(0))));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 23);
  EXPECT_NE(findings[0].fix.find("communicate"), std::string::npos);
  EXPECT_TRUE(asked(kKind, told("pid:4")).empty());
}

TEST(IoStall, NamesAProgramBesideTheRanksThatDoesNotServe) {
  const auto told = [](pid_t parent, double sleep) {
    return story()
        .stack(0, "native:write@libc.so.6 | py:show@/srv/train.py:7")
        .waits(0, {.kind = "pipe", .target = "pid:7900", .detail = "writes fd 1 (pipe:[5])"})
        .process(
            {.pid = 7900,
             .ppid = parent,
             .command = {"sleep", "500"},
             .threads = {{.stack = "native:clock_nanosleep@libc.so.6",
                          .waits_on =
                              model::WaitsOn{
                                  .kind = "timer", .target = {}, .detail = {}, .limit = sleep}}}})
        .build();
  };
  const auto findings = asked(kKind, told(kLauncherPid, 400));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].evidence.at(0).text.find("process 7900 (sleep 500)"), std::string::npos);
  EXPECT_TRUE(asked(kKind, told(kLauncherPid, 20)).empty());  // a pause: it may continue reading
  EXPECT_TRUE(asked(kKind, told(pid_of(1), 400)).empty());    // rank 1 keeps it waiting
}

TEST(IoStall, LeavesACircleOfRanksToItsOwnKind) {
  const auto told = story()
                        .stack(0, "native:flock@libc.so.6 | py:main@/srv/train.py:20")
                        .waits(0, {.kind = "file-lock",
                                   .target = "pid:" + std::to_string(pid_of(1)),
                                   .detail = "/data/shared.db, held by rank 1"})
                        .build();
  EXPECT_TRUE(asked(kKind, told).empty());
  const auto findings = asked("lock-deadlock", told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 20);
}

TEST(IoStall, IsSilentOnAPipeToAnotherProcessOfTheJob) {
  EXPECT_TRUE(asked(kKind, story()
                               .waits(0, {.kind = "pipe",
                                          .target = "pid:" + std::to_string(pid_of(1)),
                                          .detail = {}})
                               .build())
                  .empty());
}

TEST(IoStall, IsSilentOnTheSocketsOfACollective) {
  EXPECT_TRUE(
      asked(kKind, story()
                       .stack(0, kInBarrier)
                       .waits(0, {.kind = "socket", .target = "address:10.0.0.9:80", .detail = {}})
                       .build())
          .empty());
}

TEST(IoStall, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, story()
                       .waits(0, {.kind = "fifo", .target = "file:/data/manifest", .detail = {}})
                       .looked_once()
                       .build())));
}

/// The main thread of rank 0 waits for several threads with this stack.
JobBuilder with_workers(const std::string& stack, int threads) {
  JobBuilder builder = story();
  builder.stack(0,
                "native:pthread_cond_timedwait | py:wait@/usr/lib/python3.11/threading.py:327 | "
                "py:result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | "
                "py:load@/srv/data.py:40 | py:main@/srv/train.py:20");
  for (int i = 0; i < threads; ++i) {
    builder.thread(0, {.stack = stack});
  }
  return builder;
}

const std::string kWorker =
    " | py:_worker@/usr/lib/python3.11/concurrent/futures/thread.py:83 | "
    "py:run@/usr/lib/python3.11/threading.py:982";

TEST(IoStall, NamesTheLineWhereAllWorkersReadFilesForTheMainThread) {
  const auto findings = asked(
      kKind, with_workers("native:read@libc.so.6 | native:_io_FileIO_readall_impl@python3.11 | "
                          "py:fetch@/srv/weights.py:31" +
                              kWorker,
                          3)
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
  EXPECT_NE(findings[0].summary.find("in 3 threads"), std::string::npos);
}

TEST(IoStall, IsSilentOnReadersOfPipesAndOnOneReader) {
  const std::string file =
      "native:read@libc.so.6 | native:_io_FileIO_readall_impl@python3.11 | "
      "py:fetch@/srv/weights.py:31" +
      kWorker;
  EXPECT_TRUE(asked(kKind, with_workers(file, 1).build()).empty());
  EXPECT_TRUE(asked(kKind, with_workers("native:read@libc.so.6 | native:os_read@python3.11 | "
                                        "py:fetch@/srv/weights.py:31" +
                                            kWorker,
                                        3)
                               .build())
                  .empty());
  EXPECT_TRUE(asked(kKind, with_workers("native:read@libc.so.6 | native:_io_FileIO_readall_impl | "
                                        "py:_readerthread@/usr/lib/python3.11/subprocess.py:1597 | "
                                        "py:fetch@/srv/weights.py:31" +
                                            kWorker,
                                        3)
                               .build())
                  .empty());
}

TEST(IoStall, IsSilentOnReadersThatTheMainThreadDoesNotAwait) {
  JobBuilder builder =
      with_workers("native:pread64@libc.so.6 | py:fetch@/srv/weights.py:31" + kWorker, 3);
  builder.stack(0, kInBarrier);
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
