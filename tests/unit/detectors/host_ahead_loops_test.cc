// SPDX-License-Identifier: Apache-2.0
// All hosts are at one line of a loop, and only the source tells what may have ended it earlier on
// some ranks: items of a container that a class extends, a start that each rank reads, generation.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// The hosts wait in `line` of `function`, which `more` frames called.
JobBuilder spinning_in(const std::string& source, const std::string& function,
                       const std::string& line, const std::string& more) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").state(kAll, 'R').looked_once();
  builder.source(kTrain, "import collections, torch\nimport torch.distributed as dist\n" + source);
  const std::string user = at(function, line) + " | " + more;
  builder.stack(kAll, line.find("all_reduce") != line.npos ? in("all_reduce", user)
                      : line.find("barrier") != line.npos  ? in("barrier", user)
                                                           : user);
  return builder;
}

std::string tallied(const std::string& base) {
  return "class Tally(" + base +
         "):\n"
         "    def __call__(self):\n"
         "        for label in self:\n"
         "            dist.all_reduce(self.number)\n"
         "            self.total = self.number.item()\n"
         "def labels_of(batch):\n"
         "    return ['cars'] if batch.sum() > 3 else ['cars', 'trams']\n"
         "def main(batches):\n"
         "    for batch in range(100):\n"
         "        Tally((label, 1) for label in labels_of(torch.randn(4)))()\n";
}

TEST(HostAheadInLoops, AClassThatExtendsAContainerHasTheItemsItWasMadeWith) {
  const auto told = [](const std::string& base) {
    return asked("collective-count", spinning_in(tallied(base), "__call__", "self.number.item()",
                                                 "py:main@/srv/train.py:12")
                                         .build());
  };
  for (const char* base : {"dict", "collections.OrderedDict"}) {
    const Findings findings = told(base);
    ASSERT_EQ(findings.size(), 1U) << base;
    EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
    EXPECT_EQ(findings[0].locations.at(0).line, 6);
    EXPECT_EQ(findings[0].locations.at(1).line, 5);
  }
  EXPECT_TRUE(told("object").empty()) << "its content is unknown";
}

Findings resumed(const std::string& start) {
  return asked(
      "uneven-inputs",
      spinning_in("def resume(path):\n    with open(path) as file:\n        return " + start +
                      "\ndef train(start, total):\n"
                      "    for step in range(start, total):\n"
                      "        dist.all_reduce(torch.ones(4))\n"
                      "def main(path):\n    while True:\n"
                      "        train(resume(path), 30)\n"
                      "        dist.broadcast(torch.ones(1), src=0)\n",
                  "train", "all_reduce(torch.ones(4))", "py:main@/srv/train.py:11")
          .build());
}

TEST(HostAheadInLoops, AStartThatEachRankReadsEndsTheLoopEarlierAndTheCallBehindItIsNamed) {
  const Findings findings = resumed("int(file.read())");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 12) << "the first call after the loop";
  EXPECT_EQ(findings[0].locations.at(1).line, 7);
  EXPECT_TRUE(resumed("2").empty());
}

Findings generated(const std::string& wrapped, const std::string& stop) {
  return asked("generate-length",
               spinning_in("from torch.distributed.fsdp import FullyShardedDataParallel\n"
                           "def sharded(module):\n    return " +
                               wrapped +
                               "\ndef generate(model, ids):\n"
                               "    alive = torch.ones(1)\n"
                               "    for length in range(64):\n"
                               "        ids = model(ids)\n"
                               "        if " +
                               stop +
                               ":\n"
                               "            alive.zero_()\n"
                               "        if not alive.any():\n"
                               "            break\n"
                               "    return ids\n"
                               "def main():\n    model = sharded(torch.nn.Linear(8, 8))\n"
                               "    while True:\n"
                               "        ids = generate(model, torch.randn(4, 8))\n"
                               "        dist.all_reduce(ids.sum())\n",
                           "generate", "if not alive.any()", "py:main@/srv/train.py:18")
                   .build());
}

TEST(HostAheadInLoops, ATestOfTheRanksOwnEndsTheGenerationOnAShardedModule) {
  const Findings findings = generated("FullyShardedDataParallel(module)", "torch.rand(1) > 0.5");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_EQ(findings[0].locations.at(1).line, 12);
  EXPECT_TRUE(generated("module", "torch.rand(1) > 0.5").empty()) << "no call is made for it";
  EXPECT_TRUE(generated("FullyShardedDataParallel(module)", "length > 8").empty());
}

JobBuilder stepped(const std::string& branch, const std::string& sync) {
  return spinning_in(
      "from torch.nn.parallel import DistributedDataParallel as DDP\n"
      "class Net(torch.nn.Module):\n"
      "    def forward(self, x, use):\n"
      "        x = self.body(x)\n"
      "        if " +
          branch +
          ":\n"
          "            x = self.extra(x)\n"
          "        return x.sum()\n"
          "def main():\n"
          "    net = DDP(Net())\n"
          "    while True:\n"
          "        use = torch.rand(1).item() > 0.5\n" +
          sync +
          "        net(torch.randn(4, 8), use).backward()\n"
          "        dist.barrier()\n",
      "main", "dist.barrier()", "py:<module>@/srv/train.py:30");
}

TEST(HostAheadInLoops, ABranchOfTheModelThatEachRankDecidesMayLeaveParametersWithoutGradient) {
  const auto told = [](const std::string& branch) {
    return asked("unused-parameters", stepped(branch, "").build());
  };
  const Findings findings = told("use");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  EXPECT_NE(findings[0].fix.find("find_unused_parameters"), std::string::npos);
  EXPECT_TRUE(told("self.deep").empty()) << "an option of the run";
}

TEST(HostAheadInLoops, EachRankMayDecideWhichBackwardReducesItsGradients) {
  const Findings findings =
      asked("divergent-branch", stepped("self.deep",
                                        "        if use:\n"
                                        "            with net.no_sync():\n"
                                        "                net(torch.randn(4, 8), 0).backward()\n"
                                        "            continue\n")
                                    .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
}

/// All ranks are in the barrier of main(), after rank 0 evaluated the DDP-wrapped `network`.
Findings evaluated(const std::string& network, const std::string& by) {
  return asked("rank0-only-ddp-forward",
               spinning_in("from torch.nn.parallel import DistributedDataParallel as DDP\n"
                           "def evaluate(model):\n"
                           "    return model(torch.randn(4))\n"
                           "def main():\n"
                           "    model = DDP(" +
                               network +
                               ")\n"
                               "    for step in range(100):\n"
                               "        model(torch.randn(4)).backward()\n"
                               "        if dist.get_rank() == 0:\n"
                               "            evaluate(" +
                               by +
                               ")\n"
                               "        dist.barrier()\n",
                           "main", "dist.barrier()", "py:<module>@/srv/train.py:20")
                   .build());
}

TEST(HostAheadInLoops, TheForwardOfOneRankBroadcastsTheBuffersOfTheModel) {
  for (const char* by : {"model", "model.module if fast else model"}) {
    const Findings findings = evaluated("torch.nn.BatchNorm1d(4)", by);
    ASSERT_EQ(findings.size(), 1U) << by;
    EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
    EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
    EXPECT_EQ(findings[0].locations.at(0).line, 5);
  }
  EXPECT_TRUE(evaluated("torch.nn.BatchNorm1d(4)", "model.module").empty());
  EXPECT_TRUE(evaluated("torch.nn.Linear(4, 1)", "model").empty()) << "it has no buffers";
}

/// A table gives the rank its class; both classes have close(), which step() calls at its end.
Findings by_class(const std::string& role, const std::string& closes) {
  return asked("rank-conditional-collective",
               spinning_in("class Plain:\n"
                           "    def step(self):\n"
                           "        dist.all_reduce(self.x)\n"
                           "        self.close()\n"
                           "    def close(self):\n"
                           "        " +
                               closes +
                               "\n"
                               "class Keeper(Plain):\n"
                               "    def close(self):\n"
                               "        dist.all_gather(self.all, self.x)\n"
                               "KINDS = {'keep': Keeper, 'plain': Plain}\n"
                               "def main():\n"
                               "    part = KINDS[" +
                               role +
                               "]()\n"
                               "    while True:\n"
                               "        part.step()\n",
                           "Plain.step", "dist.all_reduce", "py:main@/srv/train.py:16")
                   .build());
}

TEST(HostAheadInLoops, TheClassThatEachRankChoseRanAnotherMethodInAnEarlierIteration) {
  const std::string by_rank = "'keep' if dist.get_rank() == 0 else 'plain'";
  const Findings findings = by_class(by_rank, "pass");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].locations.at(0).line, 11);
  EXPECT_EQ(findings[0].locations.at(1).line, 14);
  EXPECT_TRUE(by_class(by_rank, "dist.all_gather(self.all, self.x)").empty()) << "the same calls";
  EXPECT_TRUE(by_class("'keep'", "pass").empty()) << "the same class on every rank";
}

TEST(HostAheadInLoops, WhetherAParameterHasAGradientMayDifferAndCountsItsCalls) {
  const Findings findings = asked(
      "collective-count", spinning_in("def main(model):\n"
                                      "    while True:\n"
                                      "        for p in model.parameters():\n"
                                      "            if p.grad is not None or every:\n"
                                      "                dist.all_reduce(p.grad)\n"
                                      "                p.grad = p.grad / 2\n"
                                      "        dist.barrier()\n",
                                      "main", "dist.barrier()", "py:<module>@/srv/train.py:20")
                              .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(HostAheadInLoops, AContextMayReduceByWhatTheBatchesOfTheRankHold) {
  const Findings findings =
      asked("divergent-branch",
            spinning_in("from torch.nn.parallel import DistributedDataParallel as DDP\n"
                        "import contextlib\n"
                        "class Budget:\n"
                        "    @contextlib.contextmanager\n"
                        "    def __call__(self, part):\n"
                        "        self.seen += len(part)\n"
                        "        if self.seen > 12:\n"
                        "            yield\n"
                        "        else:\n"
                        "            with self.net.no_sync():\n"
                        "                yield\n"
                        "def parts(count):\n"
                        "    for number in range(count):\n"
                        "        yield torch.randn(number, 4)\n"
                        "def main():\n"
                        "    net = DDP(torch.nn.Linear(4, 1))\n"
                        "    budget = Budget(net)\n"
                        "    for part in parts(60):\n"
                        "        with budget(part):\n"
                        "            net(part).sum().backward()\n"
                        "    dist.barrier()\n",
                        "main", "dist.barrier()", "py:<module>@/srv/train.py:30")
                .build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 9) << "the test, not the `else`";
  EXPECT_NE(findings[0].summary.find("how much data"), std::string::npos);
}

/// Ranks 0 and 1 read a value after their call in one group, ranks 2 and 3 after theirs in another.
Findings in_two_groups(const std::string& others) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").state(kAll, 'R').looked_once();
  builder.source(kTrain,
                 "import torch.distributed as dist\nworld = [0, 1, 2, 3]\n"
                 "weights = dist.new_group(world)\nsamples = dist.new_group(" +
                     others +
                     ")\n"
                     "def train(x):\n"
                     "    dist.all_reduce(x, group=weights)\n"
                     "    norm = x.item()\n"
                     "def roll(x):\n"
                     "    dist.all_reduce(x, group=samples)\n"
                     "    mean = x.item()\n");
  const std::string spins = "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | ";
  builder.stack({0, 1}, spins + at("train", "norm = x.item()"));
  builder.stack({2, 3}, spins + at("roll", "mean = x.item()"));
  return asked("collective-order", builder.build());
}

TEST(HostAheadInLoops, LastCallsInTwoGroupsOfTheSameRanksWaitForEachOther) {
  const Findings findings = in_two_groups("world");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1, 2, 3}));
  EXPECT_EQ(findings[0].locations.at(0).line, 6);
  EXPECT_EQ(findings[0].locations.at(1).line, 9);
  EXPECT_TRUE(in_two_groups("world[2:]").empty()) << "ranks 2 and 3 wait only for each other";
}

}  // namespace
}  // namespace ddpdoctor::detectors
