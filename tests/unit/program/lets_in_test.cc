// SPDX-License-Identifier: Apache-2.0
// Decorators that run a function on some ranks only: a library's, and the user's own.
#include "collector/program/libraries/libraries.h"
#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

TEST(LetsIn, KnowsDecoratorsByWhatTheyDo) {
  const Sources sources{
      {"train.py",
       source("import torch.distributed as d\nfrom lightning.pytorch.utilities import "
              "rank_zero_only as q\n@q\ndef one():\n    a()  # ONE\ndef w(fn):\n"
              "    def inner(*x):\n        if d.get_rank() == 0:\n            return fn(*x)\n"
              "    return inner\n@w\ndef two():\n    a()  # TWO\ndef n(rank_zero_only):\n"
              "    def inner(*x):\n        return rank_zero_only(*x)\n    return inner\n@n\n"
              "def three():\n    a()  # THREE\n")}};
  const SourceText& text = sources.at("train.py");
  const auto of = [&](std::string_view mark) {
    return ranks_let_in(text, line_with(text, mark), sources).has_value();
  };
  EXPECT_TRUE(of("ONE"));
  EXPECT_TRUE(of("TWO"));
  EXPECT_FALSE(of("THREE"));
}

TEST(LetsIn, KnowsADecoratorThatAppliesThatOfALibrary) {
  const Sources sources{
      {"parts.py", source("from accelerate import Accelerator\nacc = Accelerator()\n")},
      {"train.py",
       source("import parts\nfrom functools import wraps\nfrom parts import acc as z\n"
              "def once(method):\n    @wraps(method)\n    def call(self, *a):\n"
              "        return self.acc.on_main_process(method)(self, *a)\n    return call\n"
              "def direct(fn):\n    return z.on_main_process(fn)\n"
              "def inner(fn):\n    @z.on_local_main_process\n    def call(*a):\n"
              "        return fn(*a)\n    return call\n"
              "def tells(fn):\n    note = print\n    say = z.on_main_process(note)\n"
              "    def call(*a):\n        say('called')\n        return fn(*a)\n    return call\n"
              "class R:\n    @once\n    def one(self):\n        a()  # ONE\n"
              "@direct\ndef two():\n    a()  # TWO\n@inner\ndef three():\n    a()  # THREE\n"
              "@tells\ndef four():\n    a()  # FOUR\n"
              "@parts.acc.on_main_process\ndef five():\n    a()  # FIVE\n"
              "@z.on_main_process\ndef six():\n    a()  # SIX\n")}};
  const SourceText& text = sources.at("train.py");
  const auto of = [&](std::string_view mark) {
    return ranks_let_in(text, line_with(text, mark), sources).has_value();
  };
  for (const char* restricted : {"ONE", "TWO", "THREE", "FIVE", "SIX"}) {
    EXPECT_TRUE(of(restricted)) << restricted;
  }
  EXPECT_FALSE(of("FOUR"));
}

TEST(LetsMainFirst, IsAnEffectOfContextsOfSeveralLibraries) {
  for (const char* const name : {"main_process_first", "local_main_process_first", "_goes_first",
                                 "torch_distributed_zero_first", "rank_zero_first"}) {
    EXPECT_TRUE(lets_main_first(name)) << name;
    const CallRow* row = call_of_attribute(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(makes_collective(row->does)) << name;
  }
  EXPECT_FALSE(lets_main_first("on_main_process"));
  EXPECT_FALSE(lets_main_first("barrier"));
}

}  // namespace
}  // namespace ddpdoctor::program
