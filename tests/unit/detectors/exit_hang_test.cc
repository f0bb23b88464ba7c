// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "exit-hang";

const std::string kShutdown =
    "native:__futex_abstimed_wait_common64@libc.so.6 | "
    "py:_shutdown@/usr/lib/python3.11/threading.py:1590";
const std::string kHeartbeat =
    "native:clock_nanosleep@libc.so.6 | py:heartbeat@/srv/train.py:12 | "
    "py:Thread.run@/usr/lib/python3.11/threading.py:982";

TEST(ExitHang, BlamesTheThreadThatKeepsTheProcess) {
  const auto findings = asked(
      kKind,
      job().ranks(2).exited(0, 0).stack(1, kShutdown).thread(1, {.stack = kHeartbeat}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(ExitHang, OnlySuspectsAThreadThatPausesInItsWork) {
  const auto told = [](std::string_view loop) {
    return job()
        .ranks(2)
        .source("/srv/train.py",
                "def upload():\n    " + std::string(loop) + ":\n        time.sleep(1)\n")
        .exited(0, 0)
        .stack(1, kShutdown)
        .thread(1, {.stack = "native:clock_nanosleep@libc.so.6 | py:upload@/srv/train.py:3 | "
                             "py:Thread.run@/usr/lib/python3.11/threading.py:982",
                    .waits_on =
                        model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = 0.7}})
        .build();
  };
  EXPECT_TRUE(nothing_likely(asked(kKind, told("for piece in pieces"))));
  EXPECT_FALSE(nothing_likely(asked(kKind, told("while not stopped"))));
}

const std::string kInTimer =
    "native:sem_wait@libc.so.6 | py:Event.wait@/usr/lib/python3.11/threading.py:629 | "
    "py:Timer.run@/usr/lib/python3.11/threading.py:1399 | "
    "py:Thread._bootstrap@/usr/lib/python3.11/threading.py:1002";

Findings asked_of_timer(const std::string& target) {
  return asked(kKind, job()
                          .ranks(2)
                          .source("/srv/train.py", "def tick():\n    threading.Timer(5, " + target +
                                                       ").start()\n\ntick()\n")
                          .exited(0, 0)
                          .stack(1, kShutdown)
                          .thread(1, {.stack = kInTimer, .name = "Thread-2"})
                          .build());
}

TEST(ExitHang, NamesTheLineThatStartsATimer) {
  const auto findings = asked_of_timer("tick");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 2);
  EXPECT_EQ(findings[0].locations[0].function, "tick");
}

TEST(ExitHang, OnlySuspectsATimerThatGoesOffOnce) {
  EXPECT_TRUE(nothing_likely(asked_of_timer("save")));
}

TEST(ExitHang, BlamesAFunctionThatWasRegisteredWithAtexit) {
  const std::string flush =
      "native:sem_wait@libc.so.6 | py:Event.wait@/usr/lib/python3.11/threading.py:629 | "
      "py:flush@/srv/train.py:8 | native:atexit_callfuncs@python3 | native:Py_FinalizeEx@python3";
  const auto findings = asked(kKind, job().ranks(2).exited(0, 0).stack(1, flush).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
}

/// All ranks have ended; process 800 started them and joins a thread that is in `frame`.
JobBuilder launcher_that_joins(const std::string& frame, std::optional<double> limit) {
  JobBuilder builder = job().ranks(2).exited(0, 0).exited(1, 0);
  ThreadStory exporter{.stack = frame, .name = "exporter"};
  if (limit) {
    exporter.waits_on = model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = limit};
  }
  builder.process({.pid = 800,
                   .threads = {{.stack = "native:sem_wait@libc.so.6 | "
                                         "py:Thread.join@/usr/lib/python3.11/threading.py:1119 | "
                                         "py:main@/srv/launch.py:16"},
                               exporter}});
  return builder;
}

/// Makes process 800 the ranks' parent.
Findings asked_of_launcher(const JobBuilder& builder) {
  model::JobModel told = builder.build();
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      process.ppid = process.rank ? 800 : process.ppid;
    }
  }
  return asked(kKind, told);
}

TEST(ExitHang, NamesWhatALauncherJoinsWhenItsRanksAreDone) {
  const auto findings = asked_of_launcher(
      launcher_that_joins("native:sem_wait@libc.so.6 | py:get@/usr/lib/python3.11/queue.py:171 | "
                          "py:export_metrics@/srv/launch.py:5",
                          std::nullopt));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
  EXPECT_NE(findings[0].summary.find("800"), std::string::npos);
}

TEST(ExitHang, IsSilentOnALauncherWhoseThreadGoesOnOrWhoseRanksFailed) {
  const std::string uploads = "native:clock_nanosleep@libc.so.6 | py:upload@<string>:3";
  EXPECT_TRUE(asked_of_launcher(launcher_that_joins(uploads, 0.7)).empty());
  JobBuilder failed = launcher_that_joins("native:sem_wait@libc.so.6 | py:f@/srv/l.py:5", {});
  EXPECT_TRUE(asked_of_launcher(failed.exited(1, 1)).empty());
}

TEST(ExitHang, IsSilentOnALauncherWhoseThreadWaitsWithALimitAndComesToAnEnd) {
  JobBuilder builder = job().ranks(2).exited(0, 0).exited(1, 0);
  ThreadStory monitor{.stack =
                          "native:sem_clockwait@libc.so.6 | "
                          "py:Condition.wait@/usr/lib/python3.11/threading.py:331 | "
                          "py:send@/srv/launch.py:2",
                      .name = "monitor",
                      .tid = 805};
  monitor.waits_on =
      model::WaitsOn{.kind = "timeout", .target = {}, .detail = {}, .limit = std::optional(0.9)};
  const model::WaitsOn joins{.kind = "thread", .target = "thread:805", .detail = {}, .limit = {}};
  builder.process({.pid = 800,
                   .threads = {{.stack = "native:sem_wait@libc.so.6 | "
                                         "py:Thread.join@/usr/lib/python3.11/threading.py:1119 | "
                                         "py:main@/srv/launch.py:16",
                                .waits_on = joins},
                               monitor}});
  builder.source("/srv/launch.py", "def send(cond):\n    cond.wait(timeout=1.0)\n");
  EXPECT_TRUE(asked_of_launcher(builder).empty());
}

/// The launcher has finished its program and waits for a thread started by one of its lines.
Findings asked_of_launcher_with(const std::string& thread, const std::string& start,
                                std::optional<double> limit) {
  JobBuilder builder = job().ranks(2).exited(0, 0).exited(1, 0);
  ThreadStory story{.stack = thread, .name = "Thread-1"};
  if (limit) {
    story.waits_on = model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = limit};
  }
  builder.process({.pid = 800, .threads = {{.stack = kShutdown}, story}});
  builder.source("/srv/launch.py", "def main():\n    " + start + ".start()\n");
  return asked_of_launcher(builder);
}

TEST(ExitHang, OnlySuspectsALauncherThatWaitsForATimerWhichGoesOffOnce) {
  const auto once = asked_of_launcher_with(kInTimer, "threading.Timer(22, save)", std::nullopt);
  EXPECT_TRUE(nothing_likely(once));
  const auto again = asked_of_launcher_with(kInTimer, "threading.Timer(22, main)", std::nullopt);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].confidence, Confidence::kLikely);
  EXPECT_EQ(again[0].locations.at(0).line, 2);
  EXPECT_NE(again[0].fix.find("cancel()"), std::string::npos);
}

TEST(ExitHang, OnlySuspectsALauncherWhoseThreadIsOneSleep) {
  const auto in = [](const std::string& call) {
    return "native:clock_nanosleep@libc.so.6 | " + call +
           "py:Thread.run@/usr/lib/python3.11/threading.py:982 | "
           "py:Thread._bootstrap@/usr/lib/python3.11/threading.py:1002";
  };
  const std::string start = "threading.Thread(target=time.sleep, args=(70,))";
  EXPECT_TRUE(nothing_likely(asked_of_launcher_with(in(""), start, 68)));
  const std::string serves = "py:serve_forever@/usr/lib/python3.11/socketserver.py:232 | ";
  EXPECT_FALSE(nothing_likely(asked_of_launcher_with(in(serves), start, 0.5)));
}

TEST(ExitHang, IsPossibleOfAProgramOfWhichNoRankWasSeen) {
  JobBuilder builder = job();
  builder.process({.pid = 800,
                   .threads = {{.stack = "native:sem_wait@libc.so.6 | "
                                         "py:Thread.join@/usr/lib/python3.11/threading.py:1119 | "
                                         "py:main@/srv/launch.py:16"},
                               {.stack = "native:sem_wait@libc.so.6 | "
                                         "py:get@/usr/lib/python3.11/queue.py:171 | "
                                         "py:export_metrics@/srv/launch.py:5",
                                .name = "exporter"}}});
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 5);
}

/// Ranks whose feeder threads write to their parent, which is in `parent`.
Findings ranks_with_feeders(const ThreadStory& parent) {
  JobBuilder builder = job().ranks(2).stack(
      kAll,
      "py:Thread.join@/usr/lib/python3.11/threading.py:1119 | "
      "py:Queue._finalize_join@/usr/lib/python3.11/multiprocessing/queues.py:199 | "
      "py:_exit_function@/usr/lib/python3.11/multiprocessing/util.py:360");
  builder.thread(kAll, {.stack = "native:write@libc.so.6 | "
                                 "py:Queue._feed@/usr/lib/python3.11/multiprocessing/queues.py:250",
                        .name = "QueueFeederThre"});
  builder.process({.pid = 800, .threads = {parent}});
  return asked_of_launcher(builder);
}

TEST(ExitHang, IsNoMoreThanPossibleWhileTheParentStillReadsTheQueue) {
  ThreadStory writes{.stack = "native:clock_nanosleep@libc.so.6 | py:main@<string>:3"};
  writes.waits_on = model::WaitsOn{.kind = "timer", .target = {}, .detail = {}, .limit = 0.7};
  for (const Finding& finding : ranks_with_feeders(writes)) {
    EXPECT_EQ(finding.confidence, Confidence::kPossible);
  }
  const auto stuck =
      ranks_with_feeders({.stack = "native:read@libc.so.6 | py:main@/srv/launch.py:3"});
  ASSERT_EQ(stuck.size(), 1u);
  EXPECT_EQ(stuck[0].confidence, Confidence::kLikely);
  const auto below_torchrun = ranks_with_feeders(
      {.stack = "native:clock_nanosleep@libc.so.6 | "
                "py:_invoke_run@/x/site-packages/torch/distributed/elastic/agent/server/api.py:930",
       .state = 'R'});  // it polls ten times a second
  ASSERT_EQ(below_torchrun.size(), 1u);
  EXPECT_EQ(below_torchrun[0].confidence, Confidence::kLikely);
}

/// Both ranks have ended; process 810 reads their output, which process 900 of rank 1 holds open.
JobBuilder output_held_by(double idle, const std::string& more = {}) {
  JobBuilder builder = job().ranks(2).exited(0, 0).exited(1, 0);
  const model::WaitsOn pipe{.kind = "input",
                            .target = {},
                            .detail =
                                "standard input; reads fd 0 (pipe:[1]); the other end is open "
                                "in pid 900 (sleep, not of this job)" +
                                more,
                            .limit = {}};
  builder.process({.pid = 810, .threads = {{.stack = "native:read@libc.so.6", .waits_on = pipe}}});
  builder.fact("child-started", {{"time", 99.98}, {"file", "/srv/other.py"}, {"line", 3}}, 0);
  builder.fact("child-started", {{"time", 99.93}, {"file", "/srv/train.py"}, {"line", 7}}, 1);
  return builder.fact(
      "stray", {{"command", "sleep"}, {"start_time", 100.0}, {"idle_seconds", idle}}, 1, 900);
}

TEST(ExitHang, NamesWhoLeftAProcessThatHoldsTheOutputOpen) {
  const auto findings = asked(kKind, output_held_by(4).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/train.py");
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(ExitHang, OnlySuspectsAHolderOfTheOutputThatRunsOrIsNotTheOnlyOne) {
  for (const auto& findings :
       {asked(kKind, output_held_by(0.5).build()),
        asked(kKind, output_held_by(4, ", pid 901 (rsync, not of this job)").build())}) {
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  }
}

TEST(ExitHang, IsSilentOnALauncherThatJoinsAThreadWhichTakesItsLastItems) {
  const auto drains = [](const std::string& loop) {
    JobBuilder builder =
        launcher_that_joins("native:clock_nanosleep@libc.so.6 | py:writer@/srv/launch.py:3", 0.25);
    builder.source("/srv/launch.py",
                   "def writer(q):\n    " + loop + ":\n        time.sleep(0.25)\n");
    return asked_of_launcher(builder);
  };
  EXPECT_TRUE(drains("while (line := q.get()) is not None").empty());
  EXPECT_EQ(drains("while True").size(), 1u);
}

TEST(ExitHang, IsSilentWhenOtherRanksStillTrain) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .stack(0, kInBarrier)
                               .stack(1, kShutdown)
                               .thread(1, {.stack = kHeartbeat})
                               .build())
                  .empty());
}

TEST(ExitHang, IsSilentOnARunningProgram) {
  EXPECT_TRUE(
      asked(kKind, job()
                       .ranks(2)
                       .stack(kAll, "native:clock_nanosleep@libc.so.6 | py:main@/srv/train.py:3")
                       .build())
          .empty());
}

TEST(ExitHang, IsSilentInAMovingJob) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .exited(0, 0)
                               .stack(1, kShutdown)
                               .thread(1, {.stack = kHeartbeat})
                               .progress(model::Progress::kMoving)
                               .build())
                  .empty());
}

TEST(ExitHang, OnlySuspectsARankWhoseQueueIsReadSlowly) {
  const auto told = [](const std::string& reader) {
    JobBuilder builder = job();
    builder.ranks(2)
        .exited(0, 0)
        .stack(1,
               "native:sem_wait | "
               "py:Queue._finalize_join@/usr/lib/python3.11/multiprocessing/queues.py:199 | "
               "py:_exit_function@/usr/lib/python3.11/multiprocessing/util.py:360")
        .source("/srv/run.py",
                "def main():\n    for i in range(16):\n        time.sleep(1.1)\n"
                "    process.join()\n")
        .process({.pid = 800,
                  .threads = {{.stack = reader,
                               .waits_on = model::WaitsOn{
                                   .kind = "timer", .target = {}, .detail = {}, .limit = 0.6}}}});
    model::JobModel model = builder.build();
    for (model::Observation& look : model.observations) {
      for (model::Process& process : look.processes) {
        process.ppid = process.rank ? 800 : process.ppid;
      }
    }
    return asked(kKind, model);
  };
  const auto slow = told("native:clock_nanosleep | py:main@/srv/run.py:3");
  EXPECT_TRUE(nothing_likely(slow));
  const auto joins = told(
      "native:wait4 | py:BaseProcess.join@/usr/lib/python3.11/multiprocessing/process.py:149 | "
      "py:main@/srv/run.py:4");
  ASSERT_EQ(joins.size(), 1u);
  EXPECT_NE(joins[0].summary.find("queue"), std::string::npos);
}

TEST(ExitHang, NamesTheGraphForWhichNcclWaitsBeforeItDestroysACommunicator) {
  const std::string destroys =
      "native:pthread_cond_wait@libc.so.6 | native:ncclCommPollCallbacks@libnccl.so.2 | "
      "native:commDestroySync@libnccl.so.2 | "
      "py:destroy_process_group@/v/site-packages/torch/distributed/distributed_c10d.py:2255 | "
      "py:main@/srv/train.py:45";
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").stack(kAll, destroys);
  const auto plain = asked(kKind, builder.build());
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].fix.find("reset()"), std::string::npos);
  for (const model::Rank rank : {0, 1}) {
    builder.fact("graph-launch", {{"launches", std::int64_t{60}}}, rank);
  }
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].fix.find("reset()"), std::string::npos);
  EXPECT_EQ(findings[0].locations.at(0).line, 45);
}

TEST(ExitHang, TheLastThreadWaitsForAnother) {
  const std::string in_exit =
      "native:pthread_cond_wait@libc.so.6 | native:std::condition_variable::wait@libstdc++.so.6 | "
      "native:media::Decoder::~Decoder()@libmedia.so | native:exit@libc.so.6 | "
      "native:Py_Exit@python3.11";
  const auto told = [](const std::string& stack, const std::string& second = {}) {
    auto one = job().ranks(1).stack(0, stack);
    if (!second.empty()) {
      one.thread(0, {.stack = second});
    }
    return asked(kKind, one.build());
  };
  const auto findings = told(in_exit);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("media::Decoder::~Decoder"), std::string::npos);
  EXPECT_TRUE(told(in_exit, "native:poll@libc.so.6 | native:loop@libmedia.so").empty());
}

TEST(ExitHang, AnObjectWaitsInItsLastDestructor) {
  const auto told = [](const std::string& outer) {
    return asked(kKind, job()
                            .ranks(1)
                            .stack(0,
                                   "py:wait@/usr/lib/python3.11/threading.py:320 | "
                                   "py:stop@/srv/stage.py:88 | py:Stage.__del__@/srv/stage.py:31" +
                                       outer)
                            .build())
        .size();
  };
  EXPECT_EQ(told(""), 1U);
  EXPECT_EQ(told(" | py:<module>@/srv/stage.py:40"), 0U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
