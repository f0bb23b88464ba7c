// SPDX-License-Identifier: Apache-2.0
// Stacks of the kernel: /proc/PID/stack.
#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

const std::string kFrames =
    "[<0>] rpc_wait_bit_killable+0x1e/0xa0 [sunrpc]\n"
    "[<0>] nfs4_do_open+0xcd/0x1f0 [nfsv4]\n"
    "[<0>] path_openat+0x111/0x280\n";

TEST(KernelStacks, AreThoseOfTheProcessInTheCommandAbove) {
  const auto job = read_dump("$ sudo cat /proc/4711/task/4712/stack\n" + kFrames +
                             "$ cat /proc/4711/status\nState:\tD (disk sleep)\nPid:\t4711\n");
  const auto stacks = model::facts(job, "kernel-stack");
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0]->pid, 4711);
  EXPECT_EQ(stacks[0]->text("state"), "D");
  EXPECT_EQ(stacks[0]->list("functions").at(1), "nfs4_do_open");
  EXPECT_EQ(stacks[0]->list("modules"), (std::vector<std::string>{"sunrpc", "nfsv4", ""}));
}

TEST(KernelStacks, OfOldKernelsHaveAddresses) {
  const auto job = read_dump(
      "[<ffffffffc05e2b4e>] rpc_wait_bit_killable+0x1e/0xa0 [sunrpc]\n"
      "[<ffffffffffffffff>] 0xffffffffffffffff\n");
  const auto stacks = model::facts(job, "kernel-stack");
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_FALSE(stacks[0]->pid);
  EXPECT_EQ(stacks[0]->list("functions").size(), 1U);
}

TEST(KernelStacks, OtherLinesAreNone) {
  for (const std::string text :
       {"[<>] a+0x1/0x2\n", "[<0>] none\n", "[<0>] two words+0x1/0x2\n", "[<12"}) {
    EXPECT_TRUE(model::facts(read_dump(text), "kernel-stack").empty()) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::imports
