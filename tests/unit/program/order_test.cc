// SPDX-License-Identifier: Apache-2.0
// Whether a loop's order can differ between processes: one loop, many things to iterate over.
#include "collector/program/origin/order.h"

#include <string>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

struct Case {
  const char* before;
  const char* loop;
  OwnOrder expected;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.before << " ?? " << c.loop;
}

OwnOrder order_at(const Sources& sources, const std::string& file) {
  const SourceText& text = sources.at(file);
  const auto loop = loop_in_own_order({.text = &text, .line = line_with(text, "HERE")}, sources);
  return loop ? loop->order : OwnOrder::kFixed;
}

class Orders : public testing::TestWithParam<Case> {};

TEST_P(Orders, AreWhatTheProgramSays) {
  const Sources sources{{"t.py", source(std::string(GetParam().before) + "\n" + GetParam().loop +
                                        "\n    a()  # HERE")}};
  EXPECT_EQ(name_of(order_at(sources, "t.py")), name_of(GetParam().expected));
}

constexpr auto kSet = OwnOrder::kSet;
constexpr auto kFixed = OwnOrder::kFixed;

INSTANTIATE_TEST_SUITE_P(
    Sets, Orders,
    testing::Values(Case{"", "for n in {'a', 'b'}:", kSet}, Case{"", "for n in set(names):", kSet},
                    Case{"s = frozenset(names)", "for n in s:", kSet},
                    Case{"s = {x.name for x in y}", "for n in list(s):", kSet},
                    Case{"s = {x.name for x in y}", "for i, n in enumerate(s):", kSet},
                    Case{"s = set(x) | extra", "for n in s:", kSet},
                    Case{"s = set(x)\nt = [f(n) for n in s]", "for n in t:", kSet},
                    Case{"s = set(x)\nt = {n: f(n) for n in s}", "for n, v in t.items():", kSet},
                    Case{"t = dict.fromkeys(set(x))", "for n in t:", kSet},
                    Case{"t = {}\nfor n in set(x):\n    t[n] = f(n)", "for n in t:", kSet},
                    Case{"t = []\nfor n in set(x):\n    t.append(n)", "for n in t:", kSet},
                    Case{"def names():\n    return set(x)", "for n in names():", kSet},
                    Case{"s = set(x)", "for n in s.union(y):", kSet},
                    Case{"todo, s = [], set()\ns.add(x)", "for n in s:", kSet},
                    Case{"s = set(x)\nif tidy:\n    s = sorted(s)", "for n in s:", kSet},
                    Case{"s = list(set(x))\nif tidy:\n    s.sort()", "for n in s:", kSet}));

INSTANTIATE_TEST_SUITE_P(
    Fixed, Orders,
    testing::Values(Case{"", "for n in names:", kFixed}, Case{"", "for n in ['a', 'b']:", kFixed},
                    Case{"s = set(x)", "for n in sorted(s):", kFixed},
                    Case{"s = list(set(x))\ns.sort()", "for n in s:", kFixed},
                    Case{"s, todo = [], set()", "for n in s:", kFixed},
                    Case{"s = []\nif tidy:\n    s = sorted(x)", "for n in s:", kFixed},
                    Case{"s = sorted(set(x))", "for n in s:", kFixed},
                    Case{"t = {n: f(n) for n in sorted(set(x))}", "for n in t:", kFixed},
                    Case{"t = {'a': 1, 'b': 2}", "for n in t:", kFixed},
                    Case{"", "for n in {0, 1, 2}:", kFixed},
                    Case{"s = set(range(8))", "for n in s:", kFixed},
                    Case{"s = {i for i in range(8)}", "for n in s:", kFixed},
                    Case{"import torch.distributed as d\ns = list(set(x))\n"
                         "d.broadcast_object_list(s)",
                         "for n in s:", kFixed},
                    Case{"s = set(x)\ns = sorted(s)", "for n in s:", kFixed},
                    Case{"s = set(x)\nfor y in z:\n    s = sorted(s)", "for n in s:", kFixed},
                    Case{"s = sorted(x)\ns = set(s)", "for n in s:", kSet},
                    Case{"def sorted_names():\n    return x", "for n in sorted_names():", kFixed},
                    Case{"set_of_names = load()", "for n in set_of_names:", kFixed}));

INSTANTIATE_TEST_SUITE_P(
    Others, Orders,
    testing::Values(Case{"import os", "for n in os.listdir(d):", OwnOrder::kDirectory},
                    Case{"from glob import glob as g", "for n in g('*.pt'):", OwnOrder::kDirectory},
                    Case{"from pathlib import Path\np = Path('x')",
                         "for n in p.glob('*'):", OwnOrder::kDirectory},
                    Case{"import os", "for n in sorted(os.listdir(d)):", kFixed},
                    Case{"", "for n in p.glob('*'):", kFixed},
                    Case{"", "for n in sorted(names, key=hash):", OwnOrder::kHash},
                    Case{"", "for n in sorted(names, key=lambda n: hash(n) % 8):", OwnOrder::kHash},
                    Case{"", "for n in sorted(names, key=len):", kFixed},
                    Case{"import random", "for n in random.sample(names, 3):", OwnOrder::kRandom}));

TEST(Orders, GoThroughParametersAndOtherFiles) {
  const Sources sources{
      {"/p/train.py", source("from lib.reduce import reduce_all\nnames = {n for n in x}\n"
                             "reduce_all(names)")},
      {"/p/lib/reduce.py",
       source("def reduce_all(names):\n    for n in names:\n        a()  # HERE")}};
  EXPECT_EQ(order_at(sources, "/p/lib/reduce.py"), kSet);
  Sources also = sources;
  also.emplace("/p/lib/more.py",
               source("from lib.reduce import reduce_all\nreduce_all(['a', 'b'])"));
  EXPECT_EQ(order_at(also, "/p/lib/reduce.py"), kFixed) << "who of the two called is not known";
  const SourceText& inside = also.at("/p/lib/reduce.py");
  const auto called_from = [&](const std::string& file, int line) {
    const CallString callers{{.text = &inside, .function = "reduce_all", .line = 3},
                             {.text = &also.at(file), .function = "<module>", .line = line}};
    const auto loop = loop_in_own_order({.text = &inside, .line = 3, .callers = &callers}, also);
    return loop ? loop->order : kFixed;
  };
  EXPECT_EQ(called_from("/p/train.py", 3), kSet);
  EXPECT_EQ(called_from("/p/lib/more.py", 2), kFixed);
}

TEST(Orders, OfAnAttributeAndOfAComprehension) {
  const Sources attribute{
      {"t.py", source("class T:\n    def __init__(self, x):\n        self.todo = set(x)\n"
                      "    def f(self):\n        for n in self.todo:\n            a()  # HERE")}};
  EXPECT_EQ(order_at(attribute, "t.py"), kSet);
  const Sources comprehension{{"t.py", source("s = set(x)\nr = [f(n) for n in s]  # HERE")}};
  EXPECT_EQ(order_at(comprehension, "t.py"), kSet);
}

TEST(Orders, OfAMethodOfTheSameObject) {
  const Sources sources{{"t.py", source(R"(
class Suite:
    def __init__(self, asked, tidy):
        self.names = self.expand(asked)
        if tidy:
            self.names = sorted(self.names)

    @staticmethod
    def expand(asked):
        todo, seen = list(asked), set()
        while todo:
            seen.add(todo.pop())
        return seen

    def __call__(self, x):
        return {name: share(name, x) for name in self.names}  # HERE
)")}};
  EXPECT_EQ(order_at(sources, "t.py"), OwnOrder::kSet);
}

TEST(Orders, SaysWhereItComesFrom) {
  const Sources sources{{"t.py", source("s = set(x)\nt = list(s)\nfor n in t:\n    a()  # HERE")}};
  const SourceText& text = sources.at("t.py");
  const auto loop = loop_in_own_order({.text = &text, .line = 4}, sources);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->line, 3);
  EXPECT_EQ(loop->over, "t");
  ASSERT_FALSE(loop->chain.empty());
  EXPECT_EQ(loop->chain.back().line, 1);
}

}  // namespace
}  // namespace ddpdoctor::program
