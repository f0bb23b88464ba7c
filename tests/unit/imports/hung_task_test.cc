// SPDX-License-Identifier: Apache-2.0
// The kernel's warnings about tasks that sleep without end.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string warning(const std::string& task) {
  return "[  929.123451] INFO: task " + task + " blocked for more than 122 seconds.\n" +
         "[  929.123452]       Not tainted 5.15.0-91-generic #101-Ubuntu\n" +
         "[  929.123453] task:python state:D stack:    0 pid: 4223 ppid:  4001 flags:0x00000000\n" +
         "[  929.123454] Call Trace:\n[  929.123455]  <TASK>\n[  929.123456]  "
         "__schedule+0x24e/0x590\n" +
         "[  929.123457]  ? rpc_wake+0x1/0x2 [sunrpc]\n" +
         "[  929.123458]  nfs_wait_bit_killable+0x1c/0x60 [nfs]\n";
}

TEST(HungTask, IsAStackOfTheKernel) {
  const auto job = read_log(warning("python:4223"));
  const auto all = model::facts(job, "kernel-stack");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]->pid, 4223);
  EXPECT_EQ(all[0]->number("blocked_seconds"), 122);
  EXPECT_EQ(all[0]->text("state"), "D");
  EXPECT_EQ(all[0]->list("functions"),
            (std::vector<std::string>{"__schedule", "nfs_wait_bit_killable"}));
  EXPECT_EQ(all[0]->list("modules"), (std::vector<std::string>{"", "nfs"}));
}

TEST(HungTask, AnotherProgramIsNotOfTheJob) {
  EXPECT_TRUE(model::facts(read_log(warning("jbd2/sda1-8:411")), "kernel-stack").empty());
}

}  // namespace
}  // namespace ddpdoctor::imports
