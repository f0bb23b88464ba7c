// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/backends.h"

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::model {
namespace {

constexpr const char* kBackend =
    "import torch.distributed as dist\nclass Group:\n    def allreduce(self, x):\n"
    "        return self.put(x)\ndist.Backend.register_backend('mine', Group)\n";

JobModel job_with(const std::string& backend, const std::string& stack) {
  JobModel job = tests::job()
                     .ranks(1)
                     .source("/srv/mine.py", backend)
                     .source("/srv/train.py", "def step(x):\n    share(x)\n")
                     .stack(0, stack)
                     .build();
  mark_backends(job);
  return job;
}

std::string innermost(const JobModel& job) {
  const Frame* frame = user_frame(rank_process(job, 0)->threads.front());
  return frame == nullptr ? "none" : frame->file;
}

TEST(Backends, AreNoPartOfTheProgramThatCallsThem) {
  const std::string inside = "py:Group.allreduce@/srv/mine.py:4";
  EXPECT_EQ(innermost(job_with(kBackend, inside + " | py:step@/srv/train.py:2")), "/srv/train.py");
  EXPECT_EQ(innermost(job_with("import os\n", inside + " | py:step@/srv/train.py:2")),
            "/srv/mine.py");
}

TEST(Backends, AreTheProgramWhereNoOtherFileCallsThem) {
  EXPECT_EQ(innermost(job_with(kBackend, "py:Group.allreduce@/srv/mine.py:4")), "/srv/mine.py");
}

}  // namespace
}  // namespace ddpdoctor::model
