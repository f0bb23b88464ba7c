// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/hard_wraps.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::imports {
namespace {

/// The text as a window of this width breaks its lines.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (const char c : text) {
    if (c != '\n' && column == width) {
      out += '\n';
      column = 0;
    }
    out += c;
    column = c == '\n' ? 0 : column + 1;
  }
  return out;
}

const std::string kMismatch =
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running inconsistent "
    "collective: CollectiveFingerPrint(OpType=ALLGATHER, TensorShape=[24, 8], TensorDtypes=Float, "
    "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided "
    "(default), requires_grad=false (default), pinned_memory=false (default)))\n";
const std::string kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"/srv/projects/miniconda/envs/train/lib/python3.9/site-packages/ultralytics/engine/"
    "trainer.py\", line 313, in _do_train\n"
    "    self._setup_train(world_size)\n"
    "KeyboardInterrupt\n";
const std::string kWide(150, 'x');

TEST(WithoutHardWraps, JoinsLinesBrokenWithinWords) {
  const std::string a = "[rank2]:[E513 13:25:57 ProcessGroupNCCL.cpp:616] Watchdog caught collec";
  const std::string b = "tive operation timeout: WorkNCCL(SeqNum=5, OpType=BROADCAST, NumelIn=51";
  const std::string c = "640, Timeout(ms)=1800000) ran for 1800042 milliseconds before timing ou";
  EXPECT_EQ(without_hard_wraps(a + "\n" + b + "\n" + c + "\nt.\nnext\n"), a + b + c + "t.\nnext\n");
}

TEST(WithoutHardWraps, LeavesRowsOfOneFormatAndFrames) {
  const std::string row = "Epoch: [0][  10/1563] Time 4.36 ( 4.468) Data 0.088 Loss 5.3863e+00 a";
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += row + std::to_string(i) + "\n";
  }
  EXPECT_FALSE(without_hard_wraps(text));
  const std::string rule(71, '-');
  EXPECT_FALSE(without_hard_wraps(rule + "\nroot\n" + rule + "\ncause\n" + rule + "\nend\n"));
}

TEST(WithoutHardWraps, JoinsAPassageOfATextWithWiderLines) {
  std::size_t joined = 0;
  for (std::size_t width = 60; width < 100; ++width) {
    const std::string text = kWide + "\n" + kWide + "\n" + wrapped(kMismatch, width) + "end\n";
    const auto whole = without_hard_wraps(text);
    joined += whole ? 1 : 0;
    EXPECT_EQ(whole.value_or(kWide + "\n" + kWide + "\n" + kMismatch + "end\n"),
              kWide + "\n" + kWide + "\n" + kMismatch + "end\n")
        << width;
  }
  EXPECT_GE(joined, 28U);  // of 40: a message that breaks at signs alone shows nothing
}

TEST(WithoutHardWraps, JoinsPartsThatArePaddedWithBlanks) {
  std::string text;
  std::string whole;
  for (const std::string rank : {"0", "1", "2", "3"}) {
    const std::string start =
        "[rank" + rank + "]:[E513 13:25:57 ProcessGroupNCCL.cpp:1785] at work: 532339, last en";
    const std::string rest = "queued NCCL work: 532340, last completed NCCL work: 532338.";
    text += start + "\n" + rest + std::string(start.size() - rest.size(), ' ') + "\n";
    whole += start + rest + "\n";
    const std::string other =
        "[rank" + rank + "]:[E513 13:25:57 ProcessGroupNCCL.cpp:630] of opera";
    const std::string its = std::string(start.size() - other.size(), 'o');
    text += other + its + "\ntions\n";
    whole += other + its + "tions\n";
  }
  EXPECT_EQ(without_hard_wraps(text), whole);
}

TEST(WithoutHardWraps, OneBrokenFrameOfPythonIsEnough) {
  const std::size_t begin = kTraceback.find("  File");
  const std::size_t name = kTraceback.find("_do_train") - begin;
  for (std::size_t width = 70; width < name; ++width) {
    EXPECT_EQ(without_hard_wraps(kWide + "\n" + wrapped(kTraceback, width)),
              kWide + "\n" + kTraceback)
        << width;
  }
}

TEST(WithoutHardWraps, JoinsSentencesBrokenAtABlank) {
  const std::string one = "[default1]:[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught the ";
  const std::string start = "[default2]:[E ProcessGroupNCCL.cpp:475] after ";
  const std::string other = start + std::string(one.size() - start.size() - 1, 'y') + " ";
  EXPECT_EQ(without_hard_wraps(kWide + "\n" + one + "\ntimeout\n" + other + "\ndown\n"),
            kWide + "\n" + one + "timeout\n" + other + "down\n");
}

TEST(WithoutHardWraps, ALineThatLostItsTagContinuesTheOneAbove) {
  const std::string one =
      "opt-1_3b.0 [stderr] ERROR:api:failed (exitcode: 1) local_rank: 0 of binary: ";
  EXPECT_EQ(without_hard_wraps(one + "\n/venv/bin/python\n"), one + "/venv/bin/python\n");
  EXPECT_FALSE(without_hard_wraps(one + "\nopt-1_3b.0 [stderr] next\n"));
  EXPECT_FALSE(without_hard_wraps(one + "\n\nnext\n"));
  EXPECT_FALSE(without_hard_wraps(one.substr(0, one.size() - 1) + "\n/venv/bin/python\n"));
}

TEST(WithoutHardWraps, LeavesRowsOfTwoFormats) {
  const std::string train =
      "train step 104 learning rate 0.00012 loss 2.331 gradient norm 0.71 s 7";
  const std::string check =
      "check step 104 accuracy 0.7315 and of the five best 0.8851 time 3.2 s 7";
  std::string rows;
  for (int i = 0; i < 9; ++i) {
    rows += train + "\n" + check.substr(0, train.size()) + "\n";
  }
  EXPECT_FALSE(without_hard_wraps(kWide + "\n" + rows + "done\n"));
}

TEST(WithoutHardWraps, LeavesLinesOfNcclOfOneWidth) {
  std::string rows;
  for (int i = 0; i < 6; ++i) {
    rows += "qgpu2018:59522:59993 [0] NCCL INFO Channel 0" + std::to_string(i) +
            "/0 : 4[31000] -> 6[4b000] via P2P/direct pointer 4b00" + std::to_string(i) + "\n";
    rows += "qgpu2018:59525:59994 [3] NCCL INFO Trees [0] 5/-1/-1->4->-1 and the other way 4b00" +
            std::to_string(i) + "\n";
  }
  EXPECT_FALSE(without_hard_wraps(rows));
}

TEST(WithoutHardWraps, LeavesSourceAndFramesThatAreWhole) {
  EXPECT_FALSE(without_hard_wraps(
      "Traceback (most recent call last):\n"
      "  File \"/opt/conda/lib/python3.9/site-packages/torch/nn/modules/module.py\", line 1110, in "
      "f\n"
      "    return forward_call(*input, **kwargs)\n"
      "  File \"/opt/conda/lib/python3.9/site-packages/torch/nn/modules/module.py\", line 3\n"
      "    def f(:\n"
      "SyntaxError: invalid syntax\n"));
  EXPECT_FALSE(without_hard_wraps(
      "Config(model=dict(name='resnet50', pretrained=True), data=dict(train=dict(root='/data',\n"
      "  batch=8)))\n"
      "Config(model=dict(name='resnet18', pretrained=True), data=dict(train=dict(root='/data',\n"
      "  batch=8)))\n"));
}

TEST(WithoutHardWraps, LeavesLinesThatBeginWithALabel) {
  const auto lines = [](const std::string& label) {
    return "n1:   File \"/srv/project/data.py\", line 496, in build_the_index\n" + label +
           "    doc = load\n" +
           "n1:   File \"/srv/project/util.py\", line 12, in read_all_shard_x\n" + label +
           "    idx = load\nn1: end\n";
  };
  EXPECT_FALSE(without_hard_wraps(lines("n2: ")));
  EXPECT_FALSE(without_hard_wraps(lines("n1: ")));
}

}  // namespace
}  // namespace ddpdoctor::imports
