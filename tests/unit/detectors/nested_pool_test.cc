// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "nested-pool";

const std::string kInResult =
    "native:futex_wait@libc.so.6 | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
    "py:Future.result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | ";
const std::string kWorker =
    "py:_WorkItem.run@/usr/lib/python3.11/concurrent/futures/thread.py:58 | "
    "py:_worker@/usr/lib/python3.11/concurrent/futures/thread.py:83";

JobBuilder story(const std::string& second, char state = 'S') {
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier);
  builder.stack(1, kInResult + "py:parse_all@/srv/work.py:11 | py:main@/srv/train.py:8");
  builder.thread(1, {.stack = kInResult + "py:parse@/srv/work.py:7 | " + kWorker});
  builder.thread(1, {.stack = second, .state = state});
  for (const pid_t tid : {pid_of(1), tid_of(1, 1), tid_of(1, 2)}) {
    builder.fact("blocked-on",
                 {{"tid", std::int64_t{tid}},
                  {"object", "lock:" + std::to_string(tid)},
                  {"object_kind", std::string("lock")},
                  {"operation", std::string("acquire")},
                  {"enders", std::vector<std::string>{std::to_string(pid_of(1))}},
                  {"open", false},
                  {"ready", false}},
                 1, pid_of(1));
  }
  return builder;
}

TEST(NestedPool, NamesTheTaskThatWaitsForATaskOfItsOwnPool) {
  const auto findings =
      asked(kKind, story(kInResult + "py:parse@/srv/work.py:7 | " + kWorker).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  EXPECT_EQ(findings[0].locations.at(1).line, 11);
}

TEST(NestedPool, IsSilentWhileAWorkerComputesOrIsFree) {
  EXPECT_TRUE(asked(kKind, story("py:leaf@/srv/work.py:4 | " + kWorker, 'R').build()).empty());
  EXPECT_TRUE(
      asked(kKind, story("py:_worker@/usr/lib/python3.11/concurrent/futures/thread.py:81").build())
          .empty());
}

TEST(NestedPool, IsSilentWhileAnotherThreadMaySetTheResult) {
  EXPECT_TRUE(
      asked(kKind, story("py:serve@/srv/loop.py:4 | py:_run@/srv/loop.py:9", 'R').build()).empty());
}

const std::string kHandler =
    "native:futex_wait@libc.so.6 | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
    "py:Condition.wait_for@/usr/lib/python3.11/threading.py:359 | py:push@/srv/hub.py:21 | "
    "py:_run_function@/v/site-packages/torch/distributed/rpc/internal.py:207 | "
    "native:torch::distributed::rpc::PythonRpcHandler::runPythonUdf@libtorch_python.so";
const std::string kAsks =
    "native:pthread_cond_wait@libc.so.6 | "
    "native:torch::jit::PythonFutureWrapper::wait@libtorch_python.so | "
    "py:rpc_sync@/v/site-packages/torch/distributed/rpc/api.py:813 | py:run@/srv/hub.py:40";

/// Rank 0 has two threads for RPC, which run these; `asking` ranks wait for its answers.
JobBuilder hub(const std::string& second, const Who& asking) {
  JobBuilder builder = job().ranks(4);
  builder.stack(kAll, "py:read@/usr/lib/python3.11/socket.py:5 | py:run@/srv/hub.py:44");
  builder.stack(0,
                "native:futex_wait@libc.so.6 | py:Event.wait@/usr/lib/python3.11/threading.py:629 "
                "| py:shutdown@/v/site-packages/torch/distributed/rpc/api.py:341 | "
                "py:main@/srv/hub.py:50");
  builder.stack(asking, kAsks);
  builder.thread(0, {.stack = kHandler});
  builder.thread(0, {.stack = second});
  return builder;
}

TEST(NestedPool, OfRpcIsFullWhenEveryThreadIsInAHandlerThatWaits) {
  const auto findings = asked(kKind, hub(kHandler, {1, 2, 3}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({1, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 21);
  EXPECT_NE(findings[0].fix.find("num_worker_threads=4"), std::string::npos);
}

TEST(NestedPool, OfRpcIsNotFullWithAFreeThreadOrAsManyThreadsAsRequests) {
  const std::string free =
      "native:pthread_cond_wait@libc.so.6 | native:c10::ThreadPool::main_loop@libc10.so";
  EXPECT_TRUE(asked(kKind, hub(free, {1, 2, 3}).build()).empty());
  EXPECT_TRUE(asked(kKind, hub(kHandler, {1, 2}).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
