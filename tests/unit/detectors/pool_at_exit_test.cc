// SPDX-License-Identifier: Apache-2.0
// Python waits at its end for the tasks of a ThreadPoolExecutor.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "exit-hang";

const std::string kExits =
    "py:join@/usr/lib/python3.11/threading.py:1149 | "
    "py:_python_exit@/usr/lib/python3.11/concurrent/futures/thread.py:31";
const std::string kTask = "py:read@/srv/http.py:128 | py:warm@/srv/cache.py:100";

TEST(PoolAtExit, TheThreadWithATaskKeepsTheProcess) {
  const auto findings = asked(
      kKind, job().ranks(1).stack(0, kExits).thread(0, {.stack = kTask, .name = "warm_0"}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 128);
}

TEST(PoolAtExit, IsSilentOnAShutdownOfTheProgram) {
  EXPECT_TRUE(asked(kKind, job()
                               .ranks(1)
                               .stack(0,
                                      "py:join@/usr/lib/python3.11/threading.py:1149 | "
                                      "py:shutdown@/usr/lib/python3.11/concurrent/futures/"
                                      "thread.py:239 | py:close@/srv/store.py:65")
                               .thread(0, {.stack = kTask, .name = "warm_0"})
                               .build())
                  .empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
