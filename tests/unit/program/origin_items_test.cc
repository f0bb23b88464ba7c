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

/// Whether the newest file's name, or None by this test, is None.
Origin of_newest(const std::string& test) {
  const Sources sources{{"train.py", source("import pathlib\nKEEP = True\n\n"
                                            "def newest(folder):\n"
                                            "    found = sorted(folder.glob('*.pt'))\n"
                                            "    return found[-1] if " +
                                            test +
                                            " else None\n\n"
                                            "last = newest(pathlib.Path('x'))\na()  # HERE")}};
  const SourceText& lines = sources.at("train.py");
  return origin_of("last is None", {.text = &lines, .line = line_with(lines, "HERE")}, sources);
}

TEST(OriginOfAnItemOrNone, IsThatOfTheTestInItsReturn) {
  EXPECT_EQ(of_newest("found").source, Source::kFiles);
  EXPECT_FALSE(of_newest("found").like_an_option);
  EXPECT_TRUE(of_newest("KEEP").like_an_option);
}

/// A test of the plan that is held for a batch's counts; `look` is how the plan is looked up.
Origin missing_plan(const std::string& look, std::string_view condition = "plan is None") {
  const Sources sources{{"train.py", source("import torch\n"
                                            "class Plans:\n"
                                            "    def __init__(self):\n"
                                            "        self.held = {}\n"
                                            "    def of(self, key, step):\n"
                                            "        plan = " +
                                            look +
                                            "\n"
                                            "        a()  # HERE\n"
                                            "plans = Plans()\n"
                                            "for step in range(9):\n"
                                            "    plans.of(torch.randn(3).argmax().item(), step)")}};
  const SourceText& lines = sources.at("train.py");
  return origin_of(condition, {.text = &lines, .line = line_with(lines, "HERE")}, sources);
}

TEST(OriginOfALookup, DecidesByItsKeyWhetherTheResultIsNone) {
  for (const char* look :
       {"self.held.get(key)", "self.held.get(key, None)", "self.held.pop(key, None)"}) {
    const Origin origin = missing_plan(look);
    EXPECT_TRUE(is_own(origin.source)) << look;
    EXPECT_FALSE(origin.like_an_option) << look;
  }
}

TEST(OriginOfALookup, IsAnOptionForAKeyThatAllRanksShareOrAnotherDefault) {
  for (const char* look : {"self.held.get(step)", "self.held.get('plan')",
                           "self.held.get(key, step)", "self.held.pop(step, None)"}) {
    const Origin origin = missing_plan(look);
    EXPECT_TRUE(!is_own(origin.source) || origin.like_an_option) << look;
  }
}

/// `send` of a generator, kept in an attribute: no file shows what it returns.
TEST(OriginOfACall, IsUnknownWhereItsFunctionIsAnUnknownValueOfTheObject) {
  const auto of_answer = [](const std::string& given) {
    return source_of(
        "def counts():\n    while True:\n        yield 1\n"
        "class Window:\n"
        "    def __init__(self, closes):\n        self.closes = closes\n"
        "    def micro(self):\n        a()  # HERE\n"
        "Window(" +
            given + ")",
        "self.closes(3)");
  };
  EXPECT_EQ(of_answer("counts().send"), name_of(Source::kUnknown));
  EXPECT_EQ(of_answer("lambda n: n > 2"), name_of(Source::kUniform));
}

TEST(OriginOfAnAttribute, IsOfEveryClassThatHasItWhereTheObjectsClassIsUnknown) {
  EXPECT_EQ(source_of("import torch\n@dataclass\nclass Config:\n    pixels: int = 24\n@dataclass\n"
                      "class Batch:\n    pixels: object\ndef collate(samples):\n"
                      "    return Batch(torch.rand(3))\ndef forward(batch):\n    a()  # HERE",
                      "batch.pixels.sum() > 1"),
            name_of(Source::kData));
}

}  // namespace
}  // namespace ddpdoctor::program
