// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/languages.h"

#include <string>

#include <gtest/gtest.h>

#include "collector/program/syntax/source_index.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::model {
namespace {

// Python's grammar finds a statement in it.
constexpr const char* kText = "x = left;\nif (x) call(x);\n";

bool is_parsed(Language language) {
  JobModel job = tests::job()
                     .ranks(1)
                     .source("/srv/solve.src", kText)
                     .stack(0, "py:f@/srv/solve.src:1")
                     .build();
  for (Observation& observation : job.observations) {
    for (Process& process : observation.processes) {
      for (Thread& thread : process.threads) {
        for (Frame& frame : thread.frames) {
          frame.language = language;
        }
      }
    }
  }
  mark_languages(job);
  return !program::index_of(job.sources.at("/srv/solve.src")).empty();
}

TEST(Languages, AFileThatOnlyNativeFramesNameIsNotParsedAsPython) {
  EXPECT_FALSE(is_parsed(Language::kNative));
  EXPECT_TRUE(is_parsed(Language::kPython));
}

TEST(Languages, AFileThatNoFrameNamesIsPython) {
  const JobModel job = tests::job().ranks(1).source("/srv/model.py", "import os\n").build();
  mark_languages(job);
  EXPECT_FALSE(program::index_of(job.sources.at("/srv/model.py")).empty());
}

}  // namespace
}  // namespace ddpdoctor::model
