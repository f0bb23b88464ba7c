// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/shown_place.h"

#include <gtest/gtest.h>

#include "collector/graph/standing.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

/// What the only rank does, as a dump with this stack shows it.
Activity shown_by(const std::string& stack) {
  model::JobModel told = tests::job().ranks(1).stack(0, stack).build();
  for (model::Process& process : told.observations.back().processes) {
    for (model::Thread& thread : process.threads) {
      thread.capture = "from py-spy";
    }
  }
  return standings(told).at(0).activity;
}

TEST(ShownPlace, AStackThatIsCutOffShowsNoPlace) {
  const std::string cut =
      "native:pthread_cond_wait@libc.so.6 | native:std::condition_variable::wait";
  EXPECT_EQ(shown_by(cut), Activity::kUnobserved);
  EXPECT_EQ(shown_by(cut + " | native:worker@libmine.so"), Activity::kUnobserved);
}

TEST(ShownPlace, AStackWithItsStartOrWithPythonCodeIsWhole) {
  const std::string cut = "native:pthread_cond_wait@libc.so.6 | native:serve";
  for (const char* start :
       {" | native:main", " | native:start_thread@libpthread.so.0", " | native:__libc_start_main",
        " | native:_PyEval_EvalFrameDefault", " | native:??@libpython3.11.so.1.0",
        " | py:step@/srv/train.py:40", " | py:<module>@/srv/train.py:60"}) {
    EXPECT_EQ(shown_by(cut + start), Activity::kUnknown) << start;
  }
}

TEST(ShownPlace, AFrameThatSaysWhatItWaitsForIsEnough) {
  EXPECT_EQ(shown_by("native:cudaStreamSynchronize@libcudart.so.12"), Activity::kGpu);
  EXPECT_EQ(shown_by("native:gloo::allreduce(gloo::AllreduceOptions&)@libtorch_cpu.so | "
                     "native:c10d::ProcessGroupGloo::runLoop@libtorch_cpu.so"),
            Activity::kCollective);
}

}  // namespace
}  // namespace ddpdoctor::graph
