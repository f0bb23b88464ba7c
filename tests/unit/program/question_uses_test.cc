// SPDX-License-Identifier: Apache-2.0
// Where a name is used as a value, what is wrapped, what a log lets through.
#include <gtest/gtest.h>

#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/uses.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

std::vector<int> lines_used(const SourceText& text, std::string_view name) {
  std::vector<int> out;
  for (const Use& use : uses_of(text, name)) {
    out.push_back(use.line);
  }
  return out;
}

TEST(Uses, LeaveOutWhatOnlyDeclares) {
  const SourceText text = lines_of(
      "from steps import Clip\n"                    // 1
      "class Soft(Clip):\n"                         // 2
      "    def grow(self, other: Clip) -> Clip:\n"  // 3
      "        if isinstance(other, Clip):\n"       // 4
      "            return super(Clip, self)\n"      // 5
      "        return Clip(2)\n"                    // 6
      "# Clip\n"                                    // 7
      "steps = ['Clip', Clip]\n");                  // 8
  EXPECT_EQ(lines_used(text, "Clip"), (std::vector<int>{6, 8}));
}

TEST(Uses, TellTheConditionThatYieldsThem) {
  const SourceText text = lines_of(
      "sink = Console() if rank == 0 else Silent()\n"
      "plain = Console()\n"
      "odd = 1 if Console else 2\n");
  const std::vector<Use> uses = uses_of(text, "Console");
  ASSERT_EQ(uses.size(), 3U);
  EXPECT_EQ(uses[0].condition, "rank == 0");
  EXPECT_EQ(uses[1].condition, "");
  EXPECT_EQ(uses[2].condition, "");
}

TEST(Uses, KnowWhoSetsUpTheLog) {
  const SourceText text = lines_of(
      "import logging\n"
      "out = logging.getLogger('x')\n"
      "out.setLevel(logging.INFO if lead else logging.ERROR)\n"
      "out.info('%s', out.setLevel)\n");
  const std::vector<Use> setups = logging_setups(text);
  ASSERT_EQ(setups.size(), 1U);
  EXPECT_EQ(setups[0].line, 3);
  EXPECT_EQ(setups[0].condition, "lead");
  EXPECT_TRUE(writes_to_log(text, 4));
  EXPECT_FALSE(writes_to_log(text, 3));
  EXPECT_FALSE(writes_to_log(text, 99));
}

TEST(Uses, FindWhatIsWrapped) {
  const SourceText text = lines_of(
      "self.run = tools.once(self.run)\n"
      "self.run(self.go())\n");
  const std::vector<Wrapping> found = wrappings_of(text, "run");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line, 1);
  EXPECT_EQ(found[0].callee, "tools.once");
  EXPECT_EQ(found[0].statement, "self.run = tools.once(self.run)");
  EXPECT_TRUE(wrappings_of(text, "go").empty());
}

TEST(Uses, TellWhenArgumentsBecomeText) {
  const SourceText text = lines_of(
      "log.info('loss %s', mean)\n"
      "log.info(f'loss {mean}')\n"
      "log.info('loss %s' % mean)\n"
      "log.info('loss {}'.format(mean))\n"
      "log.info('loss', str(mean))\n");
  EXPECT_FALSE(makes_text_at_once(text, 1));
  for (int line = 2; line <= 5; ++line) {
    EXPECT_TRUE(makes_text_at_once(text, line)) << line;
  }
}

TEST(Uses, ResolveCallees) {
  const SourceText text = lines_of(
      "from torch.nn.parallel import DistributedDataParallel as Wrapped\n"
      "import torch.nn as nn\n"
      "net = Wrapped(nn.Linear(1, self.width()))\n");
  const std::vector<std::string> callees = callees_at(text, 3, {{"a.py", text}});
  ASSERT_EQ(callees.size(), 3U);
  EXPECT_TRUE(is_ddp(callees[0])) << callees[0];
  EXPECT_EQ(callees[1], "torch.nn.Linear");
  EXPECT_EQ(callees[2], "self.width");
  EXPECT_FALSE(is_ddp("mine.DistributedDataParallel"));
  EXPECT_TRUE(callees_at(text, 9, {}).empty());
}

TEST(Uses, SplitConditions) {
  EXPECT_EQ(operands_of("not (a.exists() and t() < end) or b"),
            (std::vector<std::string>{"a.exists()", "t() < end", "b"}));
  EXPECT_EQ(operands_of("ready"), std::vector<std::string>{"ready"});
}

TEST(Uses, KnowWhichOperandMakesAConditionFalse) {
  EXPECT_TRUE(is_negated("step < n and not stop.asked", "stop.asked"));
  EXPECT_FALSE(is_negated("step < n and not stop.asked", "step < n"));
  EXPECT_TRUE(is_negated("not (stop or late)", "stop"));
  EXPECT_FALSE(is_negated("not (not stop)", "stop"));
}

TEST(Uses, TellWhatIsAskedForAny) {
  const SourceText text = lines_of(
      "class Table:\n"
      "    def add(self, row):\n"
      "        self.rows.append(row)\n"
      "        self.n += 1\n"
      "        self.size = len(row)\n"
      "        first = self.heap.pop(0)\n");
  EXPECT_TRUE(asks_for_any(text, "not self.rows"));
  EXPECT_TRUE(asks_for_any(text, "len(self.rows) == 0"));
  EXPECT_TRUE(asks_for_any(text, "self.n"));
  EXPECT_FALSE(asks_for_any(text, "not self.size"));
  EXPECT_FALSE(asks_for_any(text, "not self.heap"));
  EXPECT_FALSE(asks_for_any(text, "rows"));
}

}  // namespace
}  // namespace ddpdoctor::program
