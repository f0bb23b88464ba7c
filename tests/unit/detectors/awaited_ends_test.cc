// SPDX-License-Identifier: Apache-2.0
// Exceptions that pass through a wait for another process report that process's end.
#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kRaised = "rank-raised";

Findings found(std::string_view kind, const std::string& log) {
  return asked(kind, job().log({}, log).build());
}

/// A traceback of the program that waits in `call` (a library's file and function).
std::string waiting_in(const std::string& file, const std::string& function,
                       const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"/srv/run.py\", line 31, in main\n"
         "    wait(tasks)\n  File \"" +
         file + "\", line 9, in " + function + "\n    raise value\n" + exception + "\n";
}

const std::string kRayGet = "/opt/lib/python3.10/site-packages/ray/_private/worker.py";
const std::string kResult = "/usr/lib/python3.10/concurrent/futures/_base.py";

TEST(AwaitedEnd, TheQuotedTracebackOfAPoolIsTheFinding) {
  const std::string quoted = R"(multiprocessing.pool.RemoteTraceback: 
"""
Traceback (most recent call last):
  File "/usr/lib/python3.10/multiprocessing/pool.py", line 125, in worker
    result = (True, func(*args, **kwds))
  File "/srv/prep.py", line 9, in tokenize
    return table[key]
KeyError: 'img'
"""

The above exception was the direct cause of the following exception:

)";
  const auto findings = found(
      kRaised,
      quoted + waiting_in("/usr/lib/python3.10/multiprocessing/pool.py", "get", "KeyError: 'img'"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_EQ(findings[0].locations.at(1).line, 31);
  EXPECT_EQ(findings[0].locations[1].note, "its result was awaited here");
  EXPECT_TRUE(findings[0].summary.starts_with("a worker process raised (prep.py:9, tokenize)"));
}

TEST(AwaitedEnd, AnExceptionMadeFromAnotherOfTheSameProcessIsItsOwn) {
  const auto findings = found(kRaised, R"(Traceback (most recent call last):
  File "/srv/prep.py", line 9, in tokenize
    return table[key]
KeyError: 'img'

The above exception was the direct cause of the following exception:

)" + waiting_in(kResult, "result", "ValueError: no table"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
}

TEST(AwaitedEnd, RaysHeadingNamesTheTaskThatRaised) {
  const auto findings = found(
      kRaised, waiting_in(kRayGet, "get",
                          "ray.exceptions.RayTaskError(ValueError): ray::Trainer.step() (pid=2291, "
                          "ip=10.0.0.4, actor_id=17d1, repr=<run.Trainer object at 0x7f12>)\n"
                          "  File \"/srv/model.py\", line 7, in forward\n"
                          "    raise ValueError(\"bad batch\")\nValueError: bad batch"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with(
      "Trainer.step (pid 2291 on 10.0.0.4) raised (model.py:7, forward)"));
  EXPECT_EQ(findings[0].locations.at(1).line, 31);
  EXPECT_EQ(std::get<std::int64_t>(findings[0].details.at("pid")), 2291);
}

TEST(AwaitedEnd, AnActorThatFailedToStartRaisedByItself) {
  const auto findings =
      found(kRaised,
            waiting_in(kRayGet, "get",
                       "ray.exceptions.ActorDiedError: The actor died because of an error raised "
                       "in its creation task, ray::Trainer.__init__() (pid=2291, ip=10.0.0.4)\n"
                       "  File \"/srv/model.py\", line 7, in load\n"
                       "    raise ValueError(\"no weights\")\nValueError: no weights"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(AwaitedEnd, AWordOfRayWithoutFramesBeginsNoTraceback) {
  EXPECT_TRUE(found(kRaised,
                    "ray::Trainer.step() (pid=2291, ip=10.0.0.4) is idle\n"
                    "ValueError: bad batch\n")
                  .empty());
}

TEST(AwaitedEnd, ALostWorkerIsNoExceptionOfTheProgram) {
  const std::string pool = waiting_in(
      kResult, "__get_result",
      "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated "
      "abruptly while the future was running or pending.");
  EXPECT_TRUE(found(kRaised, pool).empty());
  EXPECT_EQ(found("pool-worker-lost", pool).size(), 1U);
  const std::string joblib = waiting_in(
      kResult, "__get_result",
      "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by "
      "the executor was unexpectedly terminated. This could be caused by a segmentation fault");
  EXPECT_TRUE(found(kRaised, joblib).empty());
  EXPECT_EQ(found("pool-worker-lost", joblib).size(), 1U);
  const std::string ray = waiting_in(
      kRayGet, "get",
      "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task.");
  EXPECT_TRUE(found(kRaised, ray).empty());
  EXPECT_EQ(found("dead-rank", ray).size(), 1U);
  const std::string dask = waiting_in(
      "/opt/lib/python3.10/site-packages/distributed/client.py", "_gather",
      "distributed.scheduler.KilledWorker: Attempted to run task 'f-1' on 4 different workers, but "
      "all those workers died while running it.");
  EXPECT_TRUE(found(kRaised, dask).empty());
  EXPECT_EQ(found("dead-rank", dask).size(), 1U);
  EXPECT_EQ(found(kRaised, waiting_in(kResult, "result", "ValueError: no table")).size(), 1U);
}

TEST(AwaitedEnd, RaysMemoryMonitorNamesWhomItKilledAndTheBiggestUsers) {
  const std::string told =
      "Memory on the node (IP: 10.0.0.7, ID: d1e0) where the task (actor ID: 5b0d, "
      "name=Reference.__init__, pid=41782, memory used=31.27GB) was running was 486.71GB / "
      "512.00GB (0.950605), which exceeds the memory usage threshold of 0.95. Ray killed this "
      "worker (ID: 7fe2) because it was the most recently scheduled task.\n"
      "PID\tMEM(GB)\tCOMMAND\n40110\t42.20\tray::Engine\n40111\t42.10\tray::Engine\n"
      "41782\t31.27\tray::Reference.__init__\nRefer to the documentation\n";
  const std::string log =
      waiting_in(kRayGet, "get",
                 "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on "
                 "memory.") +
      told;
  EXPECT_TRUE(found(kRaised, log).empty());
  const auto findings = found("dead-rank", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].summary,
            "Ray killed Reference.__init__ (pid 41782 on 10.0.0.7) because memory ran out: the "
            "node used 486.71GB of 512.00GB");
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
  EXPECT_EQ(findings[0].evidence.at(1).text,
            "log: biggest processes of that node: ray::Engine (2 processes, 84.3 GB), "
            "ray::Reference.__init__ (31.3 GB)");
  // Without the exception, Ray may have run the task again.
  EXPECT_EQ(found("dead-rank", told).at(0).confidence, Confidence::kPossible);
  // The newest form names no process.
  const auto newest = found("dead-rank",
                            "Memory on the node (IP: 10.0.0.7) was 957.55GB / 1006.84GB "
                            "(0.951040), which exceeds the memory usage threshold of 0.950000\n");
  ASSERT_EQ(newest.size(), 1U);
  EXPECT_NE(newest[0].summary.find("a worker on 10.0.0.7"), std::string::npos);
  EXPECT_TRUE(found("dead-rank", "Memory on the node (IP: 10.0.0.7) is fine\n").empty());
}

TEST(AwaitedEnd, TheLauncherThatJoinsItsProcessesReportsOneOfThem) {
  EXPECT_TRUE(found(kRaised, waiting_in("/opt/lib/python3.6/site-packages/torch/multiprocessing/"
                                        "spawn.py",
                                        "join", "Exception: "))
                  .empty());
}

TEST(AwaitedEnd, ADataLoaderThatTimedOutHasStuckWorkers) {
  const std::string log = R"(Traceback (most recent call last):
  File "/srv/run.py", line 31, in epoch
    for batch in loader:
  File "/opt/lib/python3.9/site-packages/torch/utils/data/dataloader.py", line 1284, in _get_data
    raise RuntimeError(f'DataLoader timed out after {self._timeout} seconds')
RuntimeError: DataLoader timed out after 300 seconds
)";
  EXPECT_TRUE(found(kRaised, log).empty());
  const auto findings = found("dataloader-worker-stuck", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
  ASSERT_EQ(findings[0].evidence.size(), 1U);  // not the line of code that raises it
}

TEST(AwaitedEnd, VllmsFrontendReportsItsEngine) {
  EXPECT_TRUE(found(kRaised, waiting_in("/opt/lib/python3.12/site-packages/vllm/v1/engine/utils.py",
                                        "wait_for_engine_startup",
                                        "RuntimeError: Engine core initialization failed. See root "
                                        "cause above. Failed core proc(s): {'EngineCore_0': 1}"))
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
