// SPDX-License-Identifier: Apache-2.0
// Tracebacks as they appear in the logs of jobs: interrupted, mixed, in margins and boxes.
#include "collector/detectors/evidence/tracebacks.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::detectors {
namespace {

std::vector<Traceback> read(const std::string& text) {
  return tracebacks(tests::job().ranks(2).log({}, text).build());
}

TEST(Tracebacks, EndWithTheirExceptionAndNotWithALineOfSomebodyElse) {
  const auto all = read(R"(step 120 Exception in thread saver:
Traceback (most recent call last):
  File "/srv/saver.py", line 47, in _run
    self._write(step)
  File "/srv/saver.py", line 36, in _write
tensor(0.2054)
    json.dump(meta, f)
Epoch: 3
step 9 loss 0.3
    ^^^^^^^^^^^^^^^^^^
TypeError: Object of type Tensor is not JSON serializable
done
)");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].exception, "TypeError: Object of type Tensor is not JSON serializable");
  EXPECT_EQ(all[0].place.line, 36);
  EXPECT_TRUE(all[0].of_thread);
}

TEST(Tracebacks, EndWithAnyNameWhereNothingBetterFollows) {
  for (const char* exception : {"OutOfShards: none left", "queue.Empty", "boom"}) {
    const auto all =
        read("Traceback (most recent call last):\n  File \"/srv/a.py\", line 4, in f\n" +
             std::string("    g()\n") + exception + "\nbye\n");
    ASSERT_EQ(all.size(), 1U) << exception;
    EXPECT_EQ(all[0].exception, exception);
    EXPECT_EQ(all[0].place.line, 4);
  }
}

TEST(Tracebacks, OfTwoProcessesAtOnceAreToldApart) {
  const auto all = read(R"(Traceback (most recent call last):
Traceback (most recent call last):
  File "/srv/train.py", line 50, in <module>
  File "/srv/train.py", line 50, in <module>
    main()
    main()
  File "/srv/train.py", line 31, in main
    load(shard)
  File "/srv/train.py", line 40, in main
    loss.backward()
  File "/srv/train.py", line 12, in load
    raise KeyError(shard)
  File "/opt/lib/python3.11/site-packages/torch/_tensor.py", line 623, in backward
    torch.autograd.backward(
KeyError: 7
RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:1
)");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].exception, "KeyError: 7");
  EXPECT_EQ(all[0].place.line, 12);
  EXPECT_EQ(all[1].place.line, 40);
}

TEST(Tracebacks, OfAGroupEndWithWhatItHolds) {
  const auto all = read(R"(  + Exception Group Traceback (most recent call last):
  |   File "/srv/train.py", line 20, in main
  |     async with TaskGroup() as group:
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/train.py", line 9, in load
    |     raise ValueError("no")
    | ValueError: no
    +------------------------------------
)");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].exception, "ValueError: no");
  EXPECT_EQ(all[1].place.line, 9);
}

TEST(Tracebacks, OfASyntaxErrorNeedNoHeading) {
  const auto all = read(
      "  File \"/srv/train.py\", line 5\n    def f(\n         ^\nSyntaxError: '(' was never "
      "closed\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].place.line, 5);
  EXPECT_TRUE(read("  File \"/srv/train.py\", line 5\n    f()\nRuntimeError: x\n").empty());
}

TEST(Tracebacks, StandInTheTableOfTorchrunWithTheirRank) {
  const auto all = read(R"(Root Cause (first observed failure):
[0]:
  time      : 2026-11-20_12:34:56
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 777)
  traceback : Traceback (most recent call last):
    File "/opt/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 3, in wrapper
      return f(*args, **kwargs)
    File "/srv/train.py", line 30, in main
      raise ValueError("no")
  ValueError: no

============================================================
)");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_EQ(all[0].exception, "ValueError: no");
  EXPECT_EQ(all[0].place.line, 30);
}

TEST(Tracebacks, OfPytestNameThePlaceBelowTheMessage) {
  const auto all = read(R"(____________________ test_train ____________________

    def test_train():
>       train()

tests/test_train.py:9:
_ _ _ _ _ _ _ _ _ _ _ _
    def train():
>       raise ValueError("no")
E       ValueError: no
E       hint: yes

train.py:34: ValueError
=============== short test summary info ===============
)");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].exception, "ValueError: no");
  EXPECT_EQ(all[0].place.file, "train.py");
  EXPECT_EQ(all[0].place.line, 34);
}

TEST(Tracebacks, OfPytestsShortStyleNameThePlaceAbove) {
  const auto all = read(
      "____ test_train ____\ntests/test_train.py:9: in test_train\n    train()\ntrain.py:34: in "
      "train\n    assert a == b\nE   assert 3 == 4\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].place.line, 34);
  EXPECT_EQ(all[0].place.function, "train");
}

TEST(Tracebacks, OfASpawnedChildInPytestHaveItsRank) {
  const auto all = read(R"(E           torch.multiprocessing.spawn.ProcessRaisedException:
E
E           -- Process 1 terminated with the following error:
E           Traceback (most recent call last):
E             File "/srv/train.py", line 12, in work
E               raise KeyError("shard")
E           KeyError: 'shard'

/opt/site-packages/torch/multiprocessing/spawn.py:208: ProcessRaisedException
)");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].exception, "KeyError: 'shard'");
  EXPECT_EQ(all[1].rank, 1);
  EXPECT_EQ(all[1].place.line, 12);
}

TEST(Tracebacks, InABoxAreRead) {
  const auto all = read(R"(╭──────── Traceback (most recent call last) ────────╮
│ /srv/train.py:30 in main                          │
│                                                   │
│   29 def main():                                  │
│ ❱ 30     load()                                   │
│ /srv/train.py:12 in load                          │
│ ❱ 12     raise ValueError("no")                   │
╰───────────────────────────────────────────────────╯
ValueError: no
)");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].exception, "ValueError: no");
  EXPECT_EQ(all[0].place.line, 12);
}

TEST(Tracebacks, TakeThePlaceOfTheCauseWhereTheirOwnIsNotTheUsers) {
  const auto all = read(R"(Traceback (most recent call last):
  File "/srv/train.py", line 12, in load
KeyError: 'shard'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/torch/utils/x.py", line 3, in run
WrappedError: failed
)");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].exception, "WrappedError: failed");
  EXPECT_EQ(all[0].place.line, 12);
}

TEST(Tracebacks, WithoutRanksAreOfTheOnlyRankThatFailed) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 4, in f\nKeyError: 1\n";
  EXPECT_EQ(tracebacks(tests::job().ranks(2).exited(1, 1).ended().log({}, text).build()).at(0).rank,
            1);
  EXPECT_FALSE(
      tracebacks(tests::job().ranks(2).exited({0, 1}, 1).ended().log({}, text).build()).at(0).rank);
}

TEST(Tracebacks, OfOneLineAreOfAllThatFailed) {
  const std::string text =
      "Traceback (most recent call last):\n  File \"/srv/train.py\", line 4, in f\nKeyError: 1\n";
  const auto all =
      tracebacks(tests::job().ranks(3).exited({0, 2}, 1).ended().log({}, text + text).build());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rank, 0);
  EXPECT_EQ(all[1].rank, 2);
}

TEST(Tracebacks, OfOneExceptionTheOneFromFurtherInsideRemains) {
  const auto kept = [](const std::string& exception) {
    const std::string head =
        "[rank1]: Traceback (most recent call last):\n"
        "[rank1]:   File \"/srv/train.py\", line 9, in main\n[rank1]:     build()\n";
    auto all = read(head + "[rank1]:   File \"/srv/data.py\", line 4, in build\n" +
                    "[rank1]:     open(path)\n[rank1]: FileNotFoundError: a.npy\n" + head +
                    "[rank1]: " + exception + "\n");
    drop_echoes(all);
    return all;
  };
  const auto one = kept("FileNotFoundError: a.npy");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].place.line, 4);
  EXPECT_EQ(kept("FileNotFoundError: b.npy").size(), 2U);
}

/// What rank 1 printed after a watchdog gave up; the last frame is in `file`.
std::vector<Traceback> after_timeout_of(int rank, const std::string& file) {
  const std::string label = "[rank" + std::to_string(rank) + "]:";
  return read(label +
              "[E606 09:09:08.1 ProcessGroupNCCL.cpp:757] [Rank 1] Watchdog caught collective "
              "operation timeout: WorkNCCL(SeqNum=1, OpType=ALLGATHER)\n"
              "[rank1]: Traceback (most recent call last):\n"
              "[rank1]:   File \"/srv/train.py\", line 9, in main\n"
              "[rank1]:     gather(out)\n"
              "[rank1]:   File \"" +
              file +
              "\", line 286, in gather\n"
              "[rank1]:     return unpack(out)\n"
              "[rank1]: ValueError: 0 items\n");
}

TEST(Tracebacks, ACallOfTorchAfterTheRanksOwnTimeoutIsAConsequence) {
  const std::string torch = "/v/site-packages/torch/distributed/utils.py";
  const auto own = after_timeout_of(1, torch);
  ASSERT_EQ(own.size(), 1U);
  EXPECT_TRUE(own[0].after_timeout);
  EXPECT_TRUE(is_consequence(own[0]));
  // The timeout of another rank may be the consequence of this exception.
  EXPECT_FALSE(is_consequence(after_timeout_of(0, torch).at(0)));
  EXPECT_FALSE(is_consequence(after_timeout_of(1, "/srv/data.py").at(0)));
}

TEST(Tracebacks, AHeadingThatTheWidthOfABoxCutsIsOneLine) {
  const auto all = read(
      "╭─────── Traceback (most recent call last) ───────╮\n"
      "│ /srv/train.py:57 in main                        │\n"
      "│ ❱ 57     fit(model)                             │\n"
      "│ /srv/a/long/path/of/a/project/trainer/loops_and │\n"
      "│ _more.py:99 in run                              │\n"
      "│ ❱ 99     next(batches)                          │\n"
      "╰─────────────────────────────────────────────────╯\n"
      "RuntimeError: DataLoader worker (pid 7) exited\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].place.file, "/srv/a/long/path/of/a/project/trainer/loops_and_more.py");
  EXPECT_EQ(all[0].place.line, 99);
  EXPECT_EQ(all[0].place.function, "run");
}

TEST(Tracebacks, OfALauncherCountIfItFailedItself) {
  const std::string raised =
      "Traceback (most recent call last):\n"
      "  File \"/v/site-packages/torch/distributed/run.py\", line 870, in run\n    "
      "elastic_launch(\n"
      "  File \"/v/site-packages/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py\", "
      "line "
      "642, in run\n    raise RendezvousTimeoutError()\n";
  const auto of = [&raised](const std::string& end) {
    return tracebacks_of_launchers(tests::job().log({}, raised + end).build());
  };
  ASSERT_EQ(of("a.b.RendezvousTimeoutError: late\n").size(), 1U);
  EXPECT_EQ(of("a.b.RendezvousTimeoutError: late\n")[0].raiser.line, 642);
  EXPECT_TRUE(of("a.b.ChildFailedError: x\n").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
