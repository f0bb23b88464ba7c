// SPDX-License-Identifier: Apache-2.0
// Prefixes of launchers that no list contains.
#include "collector/imports/logs/prefix_shape.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kRaised =
    "Traceback (most recent call last):\n"
    "  File \"/srv/fit.py\", line 31, in <module>\n"
    "    fit()\n"
    "ValueError: no such shard\n";

std::string behind(std::string_view prefix, std::string_view text = kRaised) {
  std::string out;
  text.remove_suffix(1);
  for (const std::string_view line : base::split(text, '\n')) {
    out += fmt::format("{}{}\n", prefix, line);
  }
  return out;
}

Labels labels_of(const std::string& text) {
  return with_shape_as_ranks(base::split(text, '\n'));
}

TEST(PrefixShape, APrefixWithANumberFromZeroNamesRanks) {
  for (const auto& [zero, one] :
       {std::pair("[trainer0|0]:", "[trainer1|1]:"), std::pair("[alpha|0]: ", "[beta|1]: "),
        std::pair("trainer-0 [0]: ", "trainer-1 [1]: "), std::pair("<w 0> ", "<w 1> "),
        std::pair("job/0: ", "job/1: "), std::pair("[trainer0]:", "[trainer1]:"),
        std::pair("[trainer0|8]:", "[trainer1|9]:")}) {
    const bool second_node = std::string_view(zero).find('8') != std::string_view::npos;
    const Labels labels = labels_of(behind(zero) + behind(one));
    EXPECT_EQ(labels.text, behind(second_node ? "[rank8]: " : "[rank0]: ") +
                               behind(second_node ? "[rank9]: " : "[rank1]: ") + "\n")
        << zero;
    EXPECT_TRUE(labels.warning.empty()) << zero;
    EXPECT_TRUE(is_log(behind(zero) + behind(one), "x.txt")) << zero;
  }
}

TEST(PrefixShape, AHostAndALocalRankAreCounted) {
  std::string text;
  for (const char* host : {"node0", "node1"}) {
    for (int local = 0; local < 3; ++local) {
      text += behind(fmt::format("{}/{}: ", host, local));
    }
  }
  const Labels labels = labels_of(text);
  EXPECT_NE(labels.text.find("[rank5]: ValueError"), labels.text.npos) << labels.text;
  EXPECT_NE(labels.warning.find("rank 4 is node1/1:"), labels.warning.npos) << labels.warning;
  EXPECT_EQ(labels.hosts, (std::vector<std::string>{"node0", "node1"}));
}

TEST(PrefixShape, ALauncherItselfHasNoPrefix) {
  std::string table = "torchrun\n";
  for (int i = 0; i < 12; ++i) {
    table += "  exitcode: 1\n";
  }
  EXPECT_FALSE(labels_of(behind("[trainer0|0]:") + behind("[trainer1|1]:") + table).text.empty());
  EXPECT_TRUE(labels_of(behind("node0/0: ") + behind("node0/1: ") + table).text.empty());
}

TEST(PrefixShape, RanksThatTheLinesThemselvesNameWin) {
  const auto job = read_log(behind("[worker0|0]: ", behind("[rank4]: ")) +
                            behind("[worker1|1]: ", behind("[rank5]: ")) + "[worker1|1]: waits\n");
  EXPECT_NE(job.logs.at(0).text.find("\n[rank5]: waits"), std::string::npos) << job.logs[0].text;
  // A prefix of several ranks names a host.
  const auto nodes = read_log(behind("[pod0|0]: ", behind("[rank0]: ") + behind("[rank1]: ")) +
                              behind("[pod1|1]: ", behind("[rank2]: ") + behind("[rank3]: ")) +
                              "[pod1|1]: waits\n");
  EXPECT_NE(nodes.logs.at(0).text.find("\nwaits"), std::string::npos) << nodes.logs[0].text;
}

TEST(PrefixShape, ACounterIsNotAProcess) {
  std::string steps;
  std::string sources;
  std::string frames;
  for (int i = 0; i < 40; ++i) {
    steps += fmt::format("Epoch [{}]: loss 0.{}\n", i / 20, i);
    sources += fmt::format("[INFO|trainer.py:{}] step\n", 2100 + 5 * (i % 3));
    frames += fmt::format("[f]: #{} 0x00007f in run\n", i);
  }
  std::string nccl;
  for (int i = 0; i < 12; ++i) {
    nccl += fmt::format("n4:{0}:9 [{1}] NCCL INFO init.cc:{2} -> 1\n", 70 + i % 2, i % 2, i);
  }
  const std::string handled = "[trial 0]: begins\n[trial 0]: ends\n" + behind("[trial 1]: ") +
                              "[trial 1]: skipped\n[trial 2]: begins\n[trial 2]: ends\n";
  for (const std::string& text :
       {handled, nccl, steps, steps + std::string(kRaised), sources, frames,
        std::string("[a|0]: x\n[a|1]: y\n"), behind("[trainer0|0]:"),
        behind("[step 3]: ") + behind("[step 7]: "), std::string()}) {
    EXPECT_EQ(labels_of(text).text, "") << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
