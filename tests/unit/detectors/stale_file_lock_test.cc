// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "stale-file-lock";

const std::string kInBaton =
    "native:clock_nanosleep@libc.so.6 | "
    "py:FileBaton.wait@/opt/site-packages/torch/utils/file_baton.py:47 | "
    "py:load_extension@/srv/train.py:12 | py:main@/srv/train.py:20";

JobBuilder story(bool held = false) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(1, kInBaton)
      .fact("lock-file", {{"path", std::string("/cache/ext/lock")},
                          {"exists", true},
                          {"held", held},
                          {"older_than_job", !held},
                          {"waiting_pids", std::vector<std::string>{std::to_string(pid_of(1))}}});
}

TEST(StaleFileLock, NamesTheFileToRemove) {
  const auto findings = asked(kKind, story().build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("path")), "/cache/ext/lock");
}

TEST(StaleFileLock, IsSilentWhileSomebodyHoldsIt) {
  EXPECT_TRUE(asked(kKind, story(true).build()).empty());
}

TEST(StaleFileLock, KnowsAPollLoopOfTheUser) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py",
                  "def take(path):\n    while os.path.exists(path):\n        time.sleep(1)\n")
          .stack(kAll, "native:clock_nanosleep@libc.so.6 | py:take@/srv/train.py:3")
          .fact("lock-file",
                {{"path", std::string("/cache/lock")}, {"exists", true}, {"held", false}}, 0,
                pid_of(0))
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.back().confidence, Confidence::kLikely);
}

TEST(StaleFileLock, IsSilentOnALoopThatWaitsForAFileToAppear) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py",
                  "def take(path):\n    while not os.path.exists(path):\n        time.sleep(1)\n")
          .stack(kAll, "native:clock_nanosleep@libc.so.6 | py:take@/srv/train.py:3")
          .build();
  EXPECT_TRUE(asked(kKind, told).empty());
}

/// A thread of rank 0 waits for a lock of filelock; the main thread is at `main`.
model::JobModel lock_of_a_thread(const std::string& main) {
  return job()
      .ranks(1)
      .stack(0, main)
      .thread(0, {.stack = "py:acquire@/venv/lib/python3.11/site-packages/filelock/_api.py:344 | "
                           "py:build@/srv/kernels.py:12 | py:forward@/srv/model.py:30"})
      .build();
}

TEST(StaleFileLock, TheMainThreadWaitsForTheThreadThatWaits) {
  const auto findings =
      asked(kKind, lock_of_a_thread("py:wait@/usr/lib/python3.11/threading.py:320 | "
                                    "py:get@/usr/lib/python3.11/queue.py:171 | "
                                    "py:next_batch@/srv/model.py:50"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(StaleFileLock, AThreadBesideAMainThreadAtWorkIsNotToBlame) {
  EXPECT_TRUE(asked(kKind, lock_of_a_thread("py:step@/srv/model.py:50")).empty());
}

TEST(StaleFileLock, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story().looked_once().build())));
}

/// Rank 1 polls a soft lock; `fact` is what is known about its file.
model::JobModel soft_lock(std::map<std::string, model::FactValue> fact,
                          std::optional<double> limit = {}) {
  fact.emplace("path", std::string("/cache/vocab.lock"));
  fact.emplace("exists", true);
  fact.emplace("waiting_pids", std::vector<std::string>{std::to_string(pid_of(1))});
  return job()
      .ranks(2)
      .source("/srv/train.py", "def load():\n    with SoftFileLock(path):\n        pass\n")
      .stack(kAll, kInBarrier)
      .stack(1,
             "native:clock_nanosleep@libc.so.6 | "
             "py:BaseFileLock.acquire@/opt/site-packages/filelock/_api.py:300 | "
             "py:load@/srv/train.py:2")
      .waits(1, {.kind = "lock-file", .target = {}, .detail = {}, .limit = limit})
      .fact("lock-file", std::move(fact))
      .build();
}

TEST(StaleFileLock, AFileThatNamesADeadProcessIsStale) {
  const auto findings = asked(
      kKind, soft_lock({{"held", false}, {"named_pid", std::int64_t{77}}, {"named_alive", false}}));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].evidence.at(0).text.find("process 77, which has exited"), std::string::npos)
      << findings[0].evidence.at(0).text;
}

TEST(StaleFileLock, AYoungFileOfAnotherMachineIsOnlyPossible) {
  const auto findings = asked(kKind, soft_lock({{"held", false},
                                                {"named_pid", std::int64_t{77}},
                                                {"named_host", std::string("node17")},
                                                {"older_than_job", false}}));
  EXPECT_TRUE(nothing_likely(findings));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("which may be left from an earlier run"), std::string::npos);
}

TEST(StaleFileLock, WhoGivesUpByItselfWaitsForNobody) {
  EXPECT_TRUE(asked(kKind, soft_lock({{"held", false}, {"older_than_job", true}}, 30)).empty());
}

TEST(StaleFileLock, ALockOfAnotherProgramIsWaitedForPatiently) {
  const auto held = soft_lock({{"held", true}, {"holder_pid", std::int64_t{4'000'000}}});
  EXPECT_TRUE(asked(kKind, held).empty());
  EXPECT_TRUE(nothing_likely(asked("missing-rank", held)));
  EXPECT_FALSE(nothing_likely(asked("missing-rank", soft_lock({{"held", false}}))));
}

constexpr std::string_view kExclusive = R"py(
def take(path):
    while True:
        try:
            return os.open(path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            time.sleep(1)
)py";

TEST(StaleFileLock, KnowsALoopThatCreatesExclusively) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .source("/srv/train.py", kExclusive)
                       .stack(kAll, "native:clock_nanosleep@libc.so.6 | py:take@/srv/train.py:6")
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
}

TEST(StaleFileLock, IsOnlyPossibleWhileAnotherRankMayHoldTheLock) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, job()
                       .ranks(2)
                       .source("/srv/train.py", kExclusive)
                       .stack(0, "native:read@libc.so.6 | py:build@/srv/train.py:20")
                       .stack(1, "native:clock_nanosleep@libc.so.6 | py:take@/srv/train.py:6")
                       .build())));
}

TEST(StaleFileLock, NamesAPathThatTheLocksObjectHolds) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/lock.py",
                  "class Lock:\n    def __enter__(self):\n        while True:\n"
                  "            try:\n"
                  "                self.fd = os.open(self.path, os.O_CREAT | os.O_EXCL)\n"
                  "                return self\n            except FileExistsError:\n"
                  "                time.sleep(1)\n")
          .stack(0, kInBarrier)
          .stack(1, "native:clock_nanosleep@libc.so.6 | py:Lock.__enter__@/srv/lock.py:8")
          .fact("value",
                {{"role", std::string("held")},
                 {"file", std::string("/srv/lock.py")},
                 {"line", std::int64_t{8}},
                 {"function", std::string("Lock.__enter__")},
                 {"at", std::int64_t{8}},
                 {"expression", std::string("self.path")},
                 {"value", std::string("'/cache/vocab.lck'")},
                 {"state", std::string("known")}},
                1)
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("the lock file /cache/vocab.lck"), std::string::npos)
      << findings[0].summary;
}

/// Both ranks wait for a lock; `heir`, a child of rank 1, has the locked file open.
JobBuilder locked_out(std::optional<std::int64_t> heir) {
  JobBuilder builder = job().ranks(2).stack(
      kAll, "native:flock@libc.so.6 | py:enter@/srv/gate.py:21 | py:main@/srv/train.py:20");
  for (const int rank : {0, 1}) {
    builder.waits(rank, {.kind = "file-lock", .target = "pid:7900", .detail = "/data/words.lock"});
    std::map<std::string, model::FactValue> fields = {{"path", std::string("/data/words.lock")},
                                                      {"holder_pid", std::int64_t{pid_of(1)}},
                                                      {"waiting_pid", std::int64_t{pid_of(rank)}}};
    if (heir) {
      fields["heir_pid"] = *heir;
    }
    builder.fact("file-lock", fields);
  }
  return builder.process(
      {.pid = 7900,
       .ppid = pid_of(1),
       .threads = {
           {.stack = "native:clock_nanosleep@libc.so.6 | py:compact@/srv/compact.py:12 | "
                     "py:BaseProcess._bootstrap@/usr/lib/python3.11/multiprocessing/process.py:314"
                     " | py:BaseProcess.start@/usr/lib/python3.11/multiprocessing/process.py:121 | "
                     "py:rebuild@/srv/words.py:24 | py:main@/srv/train.py:18"}}});
}

TEST(StaleFileLock, NamesTheChildThatKeepsALockWhichItsParentClosed) {
  const auto findings = asked(kKind, locked_out(7900).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_TRUE(nothing_likely(asked(kKind, locked_out(7900).looked_once().build())));
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/words.py");
  EXPECT_EQ(findings[0].locations.at(0).line, 24);
  EXPECT_NE(findings[0].fix.find("LOCK_UN"), std::string::npos);
  EXPECT_TRUE(asked("io-stall", locked_out(7900).build()).empty());
}

TEST(StaleFileLock, IsSilentIfTheProcessThatTookTheLockHasItOpen) {
  EXPECT_TRUE(asked(kKind, locked_out(std::nullopt).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
