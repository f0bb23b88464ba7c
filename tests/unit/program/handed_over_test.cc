// SPDX-License-Identifier: Apache-2.0
// What the user's program hands to a framework by a decision of each rank's own.
#include "collector/program/questions/handed_over.h"

#include <algorithm>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

using As = HandedOver::As;

std::vector<HandedOver> asked(std::string_view text) {
  const Sources sources{{"/srv/job.py", source(text)}};
  return handed_over(sources);
}

/// The lines of decisions that are known to be each rank's own.
std::vector<int> lines(std::string_view text) {
  std::vector<int> out;
  for (const HandedOver& one : asked(text)) {
    if (one.as != As::kValue && one.source != Source::kUnknown) {
      out.push_back(one.decides.line);
    }
  }
  return out;
}

constexpr std::string_view kTolerant = R"(
from torch.utils.data import DataLoader
class Tolerant:
    def __init__(self, mode):
        self.mode = mode
    def __call__(self, rows):
        try:
            return decode(rows)
        except ValueError:
            return None if self.mode == "skip" else rows
def loader(data, mode):
    return DataLoader(data, collate_fn=Tolerant(mode))
)";

TEST(HandedOver, ACallableObjectReturnsNoneWhereSomethingFailed) {
  const auto found = asked(kTolerant);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].as, As::kNothing);
  EXPECT_EQ(found[0].name, "collate_fn");
  EXPECT_EQ(found[0].function, "Tolerant.__call__");
  EXPECT_EQ(found[0].decides.line, 8);
  EXPECT_EQ(found[0].source, Source::kException);
}

TEST(HandedOver, IsNothingThatTheUsersCodeCallsItself) {
  std::string text(kTolerant);
  text.replace(text.find("DataLoader(data, collate_fn=Tolerant(mode))"), 43,
               "Tolerant(mode)(data)");
  EXPECT_TRUE(asked(text).empty());
}

TEST(HandedOver, AHookReturnsAConstantByTheRanksOwnData) {
  constexpr std::string_view kHook = R"(
import time
import trainer
class Net(trainer.Module):
    def before_batch(self, batch):
        return -1 if time.time() - self.began > 60 else None
    def step(self, batch):
        if self.options.off:
            return None
        return self.net(batch)
)";
  EXPECT_EQ(lines(kHook), std::vector<int>{5});
  std::string own(kHook);
  own.replace(own.find("(trainer.Module)"), 16, "");
  EXPECT_TRUE(lines(own).empty());  // no library calls it
}

TEST(HandedOver, AnItemIsLeftOutByTheDataThatTheFunctionGets) {
  constexpr std::string_view kItem = R"(
from trainer import Loop
def pack(rows):
    batch = {"ids": rows}
    names = [row.name for row in rows]
    if any(names):
        batch["names"] = names
    return batch
def main(rows):
    Loop(rows, collator=pack).run()
)";
  const auto found = asked(kItem);
  const auto item = std::find_if(found.begin(), found.end(),
                                 [](const HandedOver& one) { return one.as == As::kItem; });
  ASSERT_NE(item, found.end());
  EXPECT_EQ(item->name, "names");
  EXPECT_EQ(item->decides.line, 5);
  std::string always(kItem);
  always.replace(always.find("any(names)"), 10, "OPTIONS   ");
  EXPECT_TRUE(lines(always).empty());
}

TEST(HandedOver, AnAttributeOfAnObjectOfTheFrameworkIsSet) {
  constexpr std::string_view kAttribute = R"(
import time
from trainer import Callback
class Pace(Callback):
    def after_step(self, control, state):
        if time.time() - self.since > 9:
            control.evaluate = True
        if state.step % 100 == 0:
            control.save = True
        if time.time() - self.since > 8:
            self.since = 0
)";
  const auto found = asked(kAttribute);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].as, As::kAttribute);
  EXPECT_EQ(found[0].name, "evaluate");
  EXPECT_EQ(found[0].decides.line, 5);
}

TEST(HandedOver, WhatTheClockDecidesIsNoOption) {
  EXPECT_EQ(lines(R"(
import json
import time
from trainer import Callback
class Rescue(Callback):
    def after_step(self, control):
        if self.notice() is not None:
            control.save = True
        if self.options.sink is not None:
            control.log = True
    def notice(self):
        if time.monotonic() - self.asked > 5:
            self.answer = self.ask()
        return self.answer
)"),
            std::vector<int>{6});
}

TEST(HandedOver, AnAttributeOfTheUsersOwnObjectIsNotHandedOver) {
  EXPECT_TRUE(lines(R"(
import time
class Clock:
    def __init__(self):
        self.late = False
def tick():
    clock = Clock()
    if time.time() > 9:
        clock.late = True
)")
                  .empty());
}

TEST(HandedOver, AResultIsTheRanksOwn) {
  const auto found = asked(R"(
import random
from trainer import Loop
def score(predicted):
    return random.random()
def label(predicted):
    return 3
Loop(metrics=score, labels=label).run()
)");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].as, As::kValue);
  EXPECT_EQ(found[0].name, "metrics");
  EXPECT_EQ(found[0].source, Source::kRandom);
}

TEST(HandedOver, AMethodOfTheFrameworkIsCalled) {
  const auto found = asked(R"(
import time
from trainer import Module
class Net(Module):
    def after_epoch(self):
        if time.time() - self.began > 9:
            self.log("score", 3)
            self.show("score")
        if self.rank_zero:
            self.log("other", 4)
    def show(self, name):
        print(name)
)");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].as, As::kCalled);
  EXPECT_EQ(found[0].name, "log");
  EXPECT_EQ(found[0].decides.line, 5);
}

TEST(HandedOver, NoSourceHandsNothingOver) {
  EXPECT_TRUE(handed_over({}).empty());
  EXPECT_TRUE(asked("").empty());
  EXPECT_TRUE(asked("def broken(:\n  return").empty());
}

}  // namespace
}  // namespace ddpdoctor::program
