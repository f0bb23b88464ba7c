// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/items.h"

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

TEST(Items, OfADictThatAnObjectOwnsAreElements) {
  const auto of = [](const std::string& value) {
    const Sources sources{
        {"t.py", source("class Sums:\n    def clear(self):\n        self.all = " + value +
                        "\n    def total(self):\n"
                        "        for x in sorted(self.all):\n            pass\n"
                        "class Other:\n    def clear(self):\n"
                        "        self.rest = {}\n")}};
    const SourceText& text = sources.at("t.py");
    return items_of(text, line_with(text, "for x in"), sources);
  };
  EXPECT_EQ(of("{}"), Items::kElements);
  EXPECT_EQ(of("dict()"), Items::kElements);
  EXPECT_EQ(of("collections.defaultdict(lambda: 0)"), Items::kElements);
  EXPECT_EQ(of("shards()"), Items::kUnknown);
  EXPECT_EQ(of("[]"), Items::kUnknown) << "may hold batches";
}

}  // namespace
}  // namespace ddpdoctor::program
