// SPDX-License-Identifier: Apache-2.0
// Where the items of the user's generators and the attributes of a library's objects come from.
#include <string>

#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::string_view source_of(const std::string& text, std::string_view condition) {
  const Sources sources{{"train.py", source(text)}};
  const SourceText& lines = sources.at("train.py");
  return name_of(
      origin_of(condition, {.text = &lines, .line = line_with(lines, "HERE")}, sources).source);
}

TEST(OriginOfItems, IsThatOfWhatTheGeneratorYields) {
  EXPECT_EQ(source_of("import torch.distributed as d\ndef parts(n):\n    yield n\n"
                      "for part in parts(d.get_rank()):\n    a()  # HERE",
                      "part > 3"),
            name_of(Source::kRank));
}

TEST(OriginOfItems, IsALengthWhereTheyAreCounted) {
  EXPECT_EQ(source_of("import torch\ndef parts(n):\n    for i in range(n):\n"
                      "        yield torch.randn(i)\nfor part in parts(9):\n    a()  # HERE",
                      "len(part) > 3"),
            name_of(Source::kLength));
}

TEST(OriginOfAnAttribute, IsAlsoTheLibraryThatDefinesIt) {
  EXPECT_EQ(source_of("def g(p):\n    p.grad = 3\n    a()  # HERE", "p.grad is None"),
            name_of(Source::kData));
  EXPECT_EQ(source_of("class P:\n    def f(self):\n        self.grad = 3\n        a()  # HERE",
                      "self.grad is None"),
            name_of(Source::kUniform));
}

}  // namespace
}  // namespace ddpdoctor::program
