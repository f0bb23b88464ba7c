// SPDX-License-Identifier: Apache-2.0
// Each test names the object on which a thread sleeps and who could wake it, as the sources read
// them from the kernel.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "process-deadlock";
constexpr pid_t kMain = 501;
constexpr pid_t kChild = 502;
constexpr pid_t kOther = 503;

/// The object on which a thread sleeps.
struct At {
  std::string kind;
  std::string object;
  std::string operation;
  std::vector<std::string> enders;
  bool open = false;
  bool ready = false;
};

JobBuilder& blocked(JobBuilder& builder, pid_t pid, const At& at, pid_t tid = 0) {
  return builder.fact("blocked-on",
                      {{"tid", std::int64_t{tid == 0 ? pid : tid}},
                       {"object", at.object},
                       {"object_kind", at.kind},
                       {"operation", at.operation},
                       {"enders", at.enders},
                       {"open", at.open},
                       {"ready", at.ready}},
                      {}, pid);
}

std::string text(pid_t pid) {
  return std::to_string(pid);
}

const std::string kSends =
    "native:write@libc.so.6 | "
    "py:Connection._send@/usr/lib/python3.11/multiprocessing/connection.py:384 | "
    "py:exchange@/srv/train.py:";
const std::string kReceives =
    "native:read@libc.so.6 | "
    "py:Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:395 | "
    "py:exchange@/srv/train.py:";
const std::string kJoins =
    "native:wait4@libc.so.6 | py:Popen.poll@/usr/lib/python3.11/multiprocessing/popen_fork.py:27 | "
    "py:BaseProcess.join@/usr/lib/python3.11/multiprocessing/process.py:149 | "
    "py:main@/srv/train.py:";
const std::string kAcquires =
    "native:do_futex_wait@libc.so.6 | "
    "native:_multiprocessing_SemLock_acquire@_multiprocessing.so | "
    "py:decode@/srv/train.py:";

JobBuilder pair(const std::string& one, const std::string& other) {
  return job()
      .process({.role = model::Role::kOther, .pid = kMain, .ppid = 1, .threads = {{.stack = one}}})
      .process({.role = model::Role::kOther,
                .pid = kChild,
                .ppid = kMain,
                .threads = {{.stack = other}}})
      .progress(model::Progress::kStill);
}

const At kWrites{.kind = "socket", .object = "socket:[8]-[9]", .operation = "write", .enders = {}};

At by(At at, std::vector<std::string> enders) {
  at.enders = std::move(enders);
  return at;
}

TEST(ProcessDeadlock, NamesBothEndsThatSend) {
  JobBuilder builder = pair(kSends + "10", kSends + "20");
  blocked(builder, kMain, by(kWrites, {text(kChild)}));
  blocked(builder, kChild, by(kWrites, {text(kMain), text(kChild)}));
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_NE(findings[0].summary.find("process 501 is waiting to write into a full socket until "
                                     "process 502 reads it"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.size(), 2u);
  EXPECT_EQ(essence(findings), essence(asked(kKind, reversed(builder.build()))));
}

TEST(ProcessDeadlock, IsOnlyPossibleAfterOneLook) {
  JobBuilder builder =
      pair(kSends + "10", kSends + "20").looked_once().progress(model::Progress::kUnknown);
  blocked(builder, kMain, by(kWrites, {text(kChild)}));
  blocked(builder, kChild, by(kWrites, {text(kMain)}));
  EXPECT_TRUE(nothing_likely(asked(kKind, builder.build())));
}

TEST(ProcessDeadlock, IsSilentForAConsumerOfASlowProducer) {
  const At reads{
      .kind = "pipe", .object = "pipe:[7]", .operation = "read", .enders = {text(kChild)}};
  JobBuilder works = pair(kReceives + "10", "py:produce@/srv/train.py:30");
  blocked(works, kMain, reads);
  EXPECT_TRUE(asked(kKind, works.build()).empty());
  JobBuilder sleeps =
      pair(kReceives + "10", "native:clock_nanosleep@libc.so.6 | py:produce@/srv/train.py:30");
  blocked(sleeps, kMain, reads);
  EXPECT_TRUE(asked(kKind, sleeps.build()).empty());
}

TEST(ProcessDeadlock, IsSilentWhereAnEndIsOpenToStrangersOrAboutToWake) {
  for (const bool open : {true, false}) {
    JobBuilder builder = pair(kSends + "10", kSends + "20");
    At main = by(kWrites, {text(kChild)});
    main.open = open;
    main.ready = !open;
    blocked(builder, kMain, main);
    blocked(builder, kChild, by(kWrites, {text(kMain)}));
    EXPECT_TRUE(asked(kKind, builder.build()).empty());
  }
}

TEST(ProcessDeadlock, IsSilentWhenAProcessOfNoJobHasTheOtherEnd) {
  JobBuilder builder = pair(kSends + "10", kSends + "20");
  blocked(builder, kMain, by(kWrites, {text(kChild), "9999"}));
  blocked(builder, kChild, by(kWrites, {text(kMain)}));
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(ProcessDeadlock, IsSilentWhenAThreadOfThatProcessStillWorks) {
  JobBuilder builder = job().progress(model::Progress::kStill);
  builder.process({.pid = kMain,
                   .ppid = 1,
                   .threads = {{.stack = kSends + "10"},
                               {.stack = "py:drain@/srv/train.py:40", .state = 'R'}}});
  builder.process({.pid = kChild, .ppid = kMain, .threads = {{.stack = kSends + "20"}}});
  blocked(builder, kMain, by(kWrites, {text(kChild)}));
  blocked(builder, kChild, by(kWrites, {text(kMain)}));
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(ProcessDeadlock, IsSilentForAWaitWithATimeout) {
  JobBuilder builder = job().progress(model::Progress::kStill);
  builder.process({.pid = kMain,
                   .ppid = 1,
                   .threads = {{.stack = kSends + "10",
                                .waits_on = model::WaitsOn{
                                    .kind = "socket", .target = {}, .detail = {}, .limit = 9.0}}}});
  builder.process({.pid = kChild, .ppid = kMain, .threads = {{.stack = kSends + "20"}}});
  blocked(builder, kMain, by(kWrites, {text(kChild)}));
  blocked(builder, kChild, by(kWrites, {text(kMain)}));
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(ProcessDeadlock, BlamesTheLineThatJoinsAWriter) {
  JobBuilder builder = pair(kJoins + "12", kSends + "20");
  builder.process({.pid = kOther, .ppid = kMain, .threads = {{.stack = kAcquires + "20"}}});
  const std::vector<std::string> all = {text(kMain), text(kChild), text(kOther)};
  blocked(builder, kChild,
          {.kind = "pipe", .object = "pipe:[7]", .operation = "write", .enders = all});
  blocked(
      builder, kMain,
      {.kind = "process", .object = "process:502", .operation = "join", .enders = {text(kChild)}});
  blocked(
      builder, kOther,
      {.kind = "semaphore", .object = "semaphore:0:1:2+0", .operation = "acquire", .enders = all});
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_NE(findings[0].summary.find("process 501 is waiting for process 502 to exit"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("before you join"), std::string::npos);
}

/// A child has both ends of the pipe into which it writes; it waits for its own thread, which
/// writes.
TEST(ProcessDeadlock, AChildDoesNotReadThePipeThatItWritesInto) {
  JobBuilder builder = job();
  builder.process({.role = model::Role::kOther,
                   .pid = kMain,
                   .ppid = 1,
                   .threads = {{.stack = kJoins + "12"}}});
  builder.process({.role = model::Role::kOther,
                   .pid = kChild,
                   .ppid = kMain,
                   .threads = {{.stack = kReceives + "30"}, {.stack = kSends + "20", .tid = 600}}});
  builder.progress(model::Progress::kStill);
  blocked(
      builder, kMain,
      {.kind = "process", .object = "process:502", .operation = "join", .enders = {text(kChild)}});
  blocked(
      builder, kChild,
      {.kind = "socket", .object = "socket:[5]", .operation = "read", .enders = {text(kChild)}});
  blocked(builder, kChild,
          {.kind = "pipe",
           .object = "pipe:[7]",
           .operation = "write",
           .enders = {text(kMain), text(kChild)}},
          600);
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("process 501 is waiting for process 502 to exit"),
            std::string::npos)
      << findings[0].summary;
}

/// All of `waiting` wait for one semaphore that any of `all` could release.
void blocked_by_semaphore(JobBuilder& builder, const std::vector<pid_t>& waiting,
                          const std::vector<std::string>& all) {
  for (const pid_t pid : waiting) {
    blocked(builder, pid,
            {.kind = "semaphore",
             .object = "semaphore:0:1:2+0",
             .operation = "acquire",
             .enders = all});
  }
}

JobBuilder pool(const std::string& main_does) {
  JobBuilder builder = pair(main_does, kAcquires + "27");
  builder.process({.role = model::Role::kDataLoaderWorker,
                   .pid = kOther,
                   .ppid = kMain,
                   .threads = {{.stack = kAcquires + "27"}}});
  blocked_by_semaphore(builder, {kChild, kOther}, {text(kMain), text(kChild), text(kOther)});
  return builder;
}

TEST(ProcessDeadlock, NamesASemaphoreThatNobodyIsLeftToRelease) {
  JobBuilder builder = pool(kReceives + "10");
  blocked(builder, kMain,
          {.kind = "pipe",
           .object = "pipe:[7]",
           .operation = "read",
           .enders = {text(kMain), text(kChild), text(kOther)}});
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("2 processes are waiting for one semaphore (train.py:27)"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.at(0).line, 27);
}

TEST(ProcessDeadlock, IsSilentForAnIdlePoolWhoseOwnerWorks) {
  EXPECT_TRUE(asked(kKind, pool("native:sgemm@libopenblas.so | py:train@/srv/train.py:60").build())
                  .empty());
}

TEST(ProcessDeadlock, IsSilentForAnIdlePoolWhoseOwnerAwaitsASignal) {
  JobBuilder builder = pool(
      "native:do_futex_wait@libc.so.6 | native:PyThread_acquire_lock_timed@python3.11 | "
      "py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
      "py:Event.wait@/usr/lib/python3.11/threading.py:629 | py:main@/srv/train.py:70");
  blocked(
      builder, kMain,
      {.kind = "lock", .object = "lock:501+10", .operation = "acquire", .enders = {text(kMain)}});
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(ProcessDeadlock, FollowsLocksOnFilesThroughRanks) {
  JobBuilder builder = job().ranks(2);
  builder.stack(0,
                "native:flock@libc.so.6 | py:locked@/srv/train.py:11 | py:main@/srv/train.py:40");
  builder.stack(1,
                "native:flock@libc.so.6 | py:locked@/srv/train.py:11 | py:main@/srv/train.py:40");
  const auto lock = [](const std::string& name, pid_t holder) {
    return At{.kind = "file-lock",
              .object = "file-lock:8:1:" + name,
              .operation = "acquire",
              .enders = {text(holder)}};
  };
  blocked(builder, pid_of(0), lock("7", pid_of(1)));
  blocked(builder, pid_of(1), lock("8", pid_of(0)));
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_NE(findings[0].fix.find("same order"), std::string::npos);
}

TEST(ProcessDeadlock, FollowsACollectiveToTheHolderOfALock) {
  JobBuilder builder = job().ranks(2);
  builder.stack(0, kInBarrier).barrier(0, 1);
  builder.stack(1,
                "native:flock@libc.so.6 | py:locked@/srv/train.py:11 | py:main@/srv/train.py:40");
  blocked(builder, pid_of(1),
          {.kind = "file-lock",
           .object = "file-lock:8:1:7",
           .operation = "acquire",
           .enders = {text(pid_of(0))}});
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
}

TEST(ProcessDeadlock, LeavesAServiceAndItsIdleWorkerToTheCollectiveOfTheOtherWorker) {
  const auto service = [](const std::vector<std::string>& workers) {
    JobBuilder builder = job().ranks(2);
    builder.stack(0, kInBarrier).barrier(0, 1);
    builder.stack(1, kReceives + "31");
    builder.process({.role = model::Role::kOther,
                     .pid = kMain,
                     .ppid = 1,
                     .threads = {{.stack = kReceives + "41"}}});
    const At reads{.kind = "pipe", .object = "pipe:[7]", .operation = "read", .enders = {}};
    blocked(builder, pid_of(1), by(reads, {text(kMain)}));
    blocked(builder, kMain,
            {.kind = "pipe", .object = "pipe:[8]", .operation = "read", .enders = workers});
    return builder.build();
  };
  EXPECT_TRUE(asked(kKind, service({text(pid_of(0)), text(pid_of(1))})).empty());
  EXPECT_EQ(asked(kKind, service({text(pid_of(1))})).size(), 1u);
}

const std::string kCallsRpc =
    "native:futex_wait@libc.so.6 | native:torch::distributed::rpc::PyRpcAgent@libtorch_python.so | "
    "py:_invoke_rpc@/opt/site-packages/torch/distributed/rpc/api.py:800 | "
    "py:rpc_sync@/opt/site-packages/torch/distributed/rpc/api.py:870 | ";
const std::string kAnswers =
    " | py:_run_function@/opt/site-packages/torch/distributed/rpc/internal.py:210";
constexpr std::string_view kServer = R"(
class Server:
    def read(self):
        with self.lock:
            return self.weights
    def step(self, worker):
        with self.lock:
            return rpc_sync(worker, give)
def give():
    return rpc_sync("server", server.read)
)";

JobBuilder rpc(const std::string& second_of_server) {
  JobBuilder builder = job().ranks(2).source("/srv/train.py", kServer);
  builder.stack(0, "native:clock_nanosleep@libc.so.6 | py:main@/srv/train.py:60");
  builder.waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 1.0});
  builder.thread(0,
                 {.stack = kCallsRpc + "py:Server.step@/srv/train.py~return rpc_sync" + kAnswers});
  builder.thread(0, {.stack = second_of_server + kAnswers});
  builder.stack(1, kCallsRpc + "py:main@/srv/train.py:50");
  builder.thread(1, {.stack = kCallsRpc + "py:give@/srv/train.py~rpc_sync(\"server\"" + kAnswers});
  const At lock{.kind = "lock", .object = "lock", .operation = "acquire", .enders = {}};
  blocked(builder, pid_of(0), lock, tid_of(0, 1));
  blocked(builder, pid_of(0), lock, tid_of(0, 2));
  blocked(builder, pid_of(1), lock);
  blocked(builder, pid_of(1), lock, tid_of(1, 1));
  return builder;
}

TEST(ProcessDeadlock, FollowsAnRpcBackToTheLockOfItsCaller) {
  const auto findings = asked(kKind, rpc("native:PyThread_acquire_lock_timed@python3.11 | "
                                         "py:Server.read@/srv/train.py~with self.lock")
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].fix.find("before you send the RPC"), std::string::npos) << findings[0].fix;
  EXPECT_EQ(findings[0].locations.at(0).function, "Server.step");
}

TEST(ProcessDeadlock, IsSilentWhileAServerComputesAnAnswer) {
  EXPECT_TRUE(
      asked(kKind, rpc("native:sgemm@libopenblas.so | py:Server.read@/srv/train.py:5").build())
          .empty());
}

/// Two workers of rank 1's DataLoader wait for a semaphore that only they could release.
JobBuilder workers_without_a_slot() {
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier).stack(1, kInBatchWait);
  const pid_t main = pid_of(1);
  const std::vector<pid_t> workers = {worker_pid(1, 0), worker_pid(1, 1)};
  const std::vector<std::string> all = {text(main), text(workers[0]), text(workers[1])};
  blocked(builder, main,
          {.kind = "pipe", .object = "pipe:[7]", .operation = "read", .enders = all});
  for (int i = 0; i < 2; ++i) {
    builder.worker(1,
                   "native:do_futex_wait@libc.so.6 | py:seat@/srv/decode.py:27 | " + kForkedWorker);
  }
  blocked_by_semaphore(builder, workers, all);
  return builder;
}

TEST(ProcessDeadlock, OfWorkersOfALoaderIsAWorkerThatIsStuck) {
  const auto model = workers_without_a_slot().build();
  EXPECT_TRUE(asked(kKind, model).empty());
  const auto findings = asked("dataloader-worker-stuck", model);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_NE(findings[0].summary.find("2 DataLoader workers wait for a semaphore (decode.py:27"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].fix.find("`finally`"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
