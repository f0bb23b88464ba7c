// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/hands_on.h"

#include <gtest/gtest.h>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

const SourceText& wire() {
  static const SourceText text = source(R"(import torch.distributed as dist
class Wire:
    def put(self, tensor, peer, tag):
        dist.send(tensor, peer, tag=tag)
    def mean(self, value):
        dist.all_reduce(value, op=dist.ReduceOp.SUM, group=self.group)
    def shift(self, value):
        dist.send(value, self.rank + 1)
    def finish(self):
        dist.barrier()
    def halve(self, value):
        half = value / 2
        dist.all_reduce(half)
    def both(self, value):
        dist.all_reduce(self.pack(value))
dist.barrier()
)");
  return text;
}

TEST(HandsOn, ItsParametersToItsOnlyCall) {
  EXPECT_TRUE(hands_on(wire(), 4, "Wire.put"));
  EXPECT_TRUE(hands_on(wire(), 6, "mean"));
}

TEST(HandsOn, NotWhatItMadeItself) {
  EXPECT_FALSE(hands_on(wire(), 8, "shift"));    // an expression
  EXPECT_FALSE(hands_on(wire(), 10, "finish"));  // nothing
  EXPECT_FALSE(hands_on(wire(), 13, "halve"));   // a local variable
  EXPECT_FALSE(hands_on(wire(), 15, "both"));    // the result of another call
  EXPECT_FALSE(hands_on(wire(), 16, "<module>"));
  EXPECT_FALSE(hands_on(wire(), 99, "put"));
  EXPECT_FALSE(hands_on(SourceText(), 4, "put"));
}

}  // namespace
}  // namespace ddpdoctor::program
