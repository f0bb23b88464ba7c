// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/skipped_call.h"

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

/// The line that decides to skip task_done(), if `body` follows `item = self.box.get()` in a loop.
std::optional<int> skipped(const std::string& body) {
  const Sources sources{{"/srv/box.py", source("class Box:\n"
                                               "    def finish(self):\n"
                                               "        self.box.task_done()\n"
                                               "    def serve(self):\n"
                                               "        while True:\n"
                                               "            item = self.box.get()\n" +
                                               body)}};
  return comes_back_without(sources.at("/srv/box.py"), sources, 6, "task_done");
}

TEST(SkippedCall, FindsTheConditionThatSkipsTheCall) {
  EXPECT_EQ(skipped("            if item.old:\n                continue\n"
                    "            self.box.task_done()\n"),
            7);
  EXPECT_EQ(skipped("            if item.new:\n                work(item)\n"
                    "                self.box.task_done()\n"),
            7);
  EXPECT_EQ(skipped("            try:\n                work(item)\n"
                    "                self.box.task_done()\n            except ValueError:\n"
                    "                pass\n"),
            8);
}

TEST(SkippedCall, IsSilentIfEachPathMakesTheCallOrNone) {
  EXPECT_EQ(skipped("            work(item)\n            self.box.task_done()\n"), std::nullopt);
  EXPECT_EQ(skipped("            if item.old:\n                self.box.task_done()\n"
                    "                continue\n            self.box.task_done()\n"),
            std::nullopt);
  EXPECT_EQ(skipped("            if item is None:\n                break\n"
                    "            self.box.task_done()\n"),
            std::nullopt);
  EXPECT_EQ(skipped("            try:\n                work(item)\n            except ValueError:\n"
                    "                pass\n            finally:\n"
                    "                self.box.task_done()\n"),
            std::nullopt);
  EXPECT_EQ(skipped("            work(item)\n"), std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::program
