// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "waiting-for-input";

const std::string kInPdb =
    "native:read@libc.so.6 | py:Cmd.cmdloop@/usr/lib/python3.11/cmd.py:126 | "
    "py:Pdb._cmdloop@/usr/lib/python3.11/pdb.py:327 | "
    "py:Pdb.interaction@/usr/lib/python3.11/pdb.py:367 | py:step@/srv/train.py:12 | "
    "py:main@/srv/train.py:20";

TEST(WaitingForInput, FindsTheBreakpoint) {
  const auto findings =
      asked(kKind, job().ranks(3).stack(kAll, kInBarrier).stack(2, kInPdb).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(WaitingForInput, FindsInputByItsLineWhenTheInterpreterIsStripped) {
  const auto told = job()
                        .ranks(2)
                        .source("/srv/train.py", "def ask():\n    return input('go? ')\n")
                        .stack(kAll, kInBarrier)
                        .stack(0, "native:read@libc.so.6 | py:ask@/srv/train.py:2")
                        .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
}

TEST(WaitingForInput, FindsAStoppedRank) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInBarrier)
                                         .stack(1, "py:step@/srv/train.py:12")
                                         .state(1, 'T')
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_NE(findings[0].fix.find("kill -CONT"), std::string::npos);
}

TEST(WaitingForInput, IsSilentOnAReadOfSomethingElse) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(2)
                               .source("/srv/train.py", "def f():\n    return pipe.read()\n")
                               .stack(kAll, kInBarrier)
                               .stack(0, "native:read@libc.so.6 | py:f@/srv/train.py:2")
                               .build())
                  .empty());
}

TEST(WaitingForInput, FindsAPromptOfAProgramThatTheRankStarted) {
  const auto told = [](const std::string& writer) {
    return job()
        .ranks(2)
        .stack(kAll, kInBarrier)
        .stack(1,
               "native:wait4@libc.so.6 | py:Popen.wait@/usr/lib/python3.11/subprocess.py:1264 | "
               "py:fetch@/srv/data.py:16")
        .waits(1, {.kind = "process", .target = "pid:7900", .detail = {}})
        .process({.pid = 7900,
                  .ppid = pid_of(1),
                  .command = {"ssh", "data"},
                  .threads = {{.stack = "native:read@libc.so.6",
                               .waits_on =
                                   model::WaitsOn{
                                       .kind = "input", .target = writer, .detail = "fd 0"}}}})
        .build();
  };
  const auto findings = asked(kKind, told(""));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 16);
  EXPECT_TRUE(asked(kKind, told("pid:" + std::to_string(pid_of(1)))).empty());
}

TEST(WaitingForInput, NamesTheProgramWhoseOutputTheRankReads) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .stack(kAll, kInBarrier)
                       .stack(1,
                              "native:read@libc.so.6 | "
                              "py:Popen.communicate@/usr/lib/python3.11/subprocess.py:1207 | "
                              "py:fetch@/srv/data.py:16")
                       .waits(1, {.kind = "pipe", .target = "pid:7900", .detail = {}})
                       .process({.pid = 7900,
                                 .ppid = pid_of(1),
                                 .command = {"ssh", "data"},
                                 .threads = {{.stack = "native:read@libc.so.6",
                                              .waits_on = model::WaitsOn{.kind = "input",
                                                                         .target = {},
                                                                         .detail = "fd 0"}}}})
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_NE(findings[0].summary.find("process 7900 (ssh data) of rank 1"), std::string::npos)
      << findings[0].summary;
}

TEST(WaitingForInput, IsOnlyPossibleAfterOneLook) {
  EXPECT_TRUE(nothing_likely(
      asked(kKind, job().ranks(2).stack(kAll, kInBarrier).stack(1, kInPdb).looked_once().build())));
}

TEST(WaitingForInput, CountsTheAnswersToTheSameMenu) {
  const std::string menu = "wandb: (1) New account\nwandb: (2) Offline\nwandb: Enter your choice: ";
  const auto waits = [](const std::string& text) {
    return asked(kKind, job().ranks(1).looked_once().log({}, text).build()).size();
  };
  EXPECT_EQ(waits(menu + menu + "2\nwandb: offline\nstep 1\n"), 1U);
  EXPECT_EQ(waits(menu + "2\nwandb: offline\nstep 1\n"), 0U);
  EXPECT_EQ(waits(menu + "2\n" + menu + "2\nwandb: offline\nstep 1\n"), 0U);
  EXPECT_EQ(waits("INFO trainer: phases: (1) warmup\nINFO trainer: ok\n"
                  "INFO trainer: phases: (1) warmup\nINFO trainer: ok\n"),
            0U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
