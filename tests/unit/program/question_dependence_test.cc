// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/dependence.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

constexpr auto kRank = Dependence::kRank;
constexpr auto kData = Dependence::kData;
constexpr auto kNone = Dependence::kNone;

struct Followed {
  const char* source;
  const char* condition;
  Dependence expected;
};

void PrintTo(const Followed& c, std::ostream* out) {
  *out << c.source << " ?? " << c.condition;
}

class NamesAreFollowed : public testing::TestWithParam<Followed> {};

TEST_P(NamesAreFollowed, ThroughTheFile) {
  const Lines lines = lines_of(std::string(GetParam().source) +
                               "\nimport torch.distributed as dist\nrank = dist.get_rank()");
  EXPECT_EQ(dependence(GetParam().condition, lines, line_with(lines, "HERE")), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Assignments, NamesAreFollowed,
    testing::Values(
        Followed{"def f():\n    first = rank == 0\n    if first:  # HERE\n        pass", "first",
                 kRank},
        Followed{"chosen = dist.get_rank() == 0\nverbose = chosen\ndef f():\n    g()  # HERE",
                 "verbose", kRank},
        Followed{"def f(chosen):\n    g()  # HERE", "chosen", kData},
        Followed{
            "class T:\n    def __init__(self, r):\n        self.writes = dist.get_rank() == 0\n"
            "    def f(self):\n        g()  # HERE",
            "self.writes", kRank},
        Followed{"def writes():\n    return dist.get_rank() == 0\ndef f():\n    g()  # HERE",
                 "writes()", kRank},
        Followed{
            "class T:\n    @property\n    def writes(self):\n        return dist.get_rank() == 0\n"
            "    def f(self):\n        g()  # HERE",
            "self.writes", kRank},
        Followed{"def f(x):\n    loss = x + 0.3 * rank\n    g()  # HERE", "loss > 1", kData},
        Followed{"def f(x):\n    if rank == 1:\n        x = []\n    g()  # HERE", "x", kData},
        Followed{"def f(x):\n    mine = rank == 1 and x\n    g()  # HERE", "mine", kRank},
        Followed{"def f():\n    a, b = rank == 0, 3\n    g()  # HERE", "a", kRank},
        Followed{"def f():\n    a, b = rank == 0, 3\n    g()  # HERE", "b", kNone},
        Followed{"def f():\n    if (mine := rank + 1) > 2:\n        g()  # HERE", "mine", kRank},
        Followed{"DEBUG = False\ndef f():\n    g()  # HERE", "DEBUG", kNone},
        Followed{"def f():\n    for i in range(3 + rank):\n        g()  # HERE", "i", kRank},
        Followed{"def f():\n    stop: bool = loss < 1\n    g()  # HERE", "stop", kData},
        Followed{"def f():\n    n = 3\n    n += rank\n    g()  # HERE", "n == 4", kRank}));

INSTANTIATE_TEST_SUITE_P(
    Guards, NamesAreFollowed,
    testing::Values(
        Followed{
            "def f():\n    stop = False\n    if rank == 0:\n        stop = True\n    g()  # HERE",
            "stop", kRank},
        Followed{
            "def f():\n    stop = False\n    if loss < 3:\n        stop = True\n    g()  # HERE",
            "stop", kData},
        Followed{"def f():\n    if rank == 0:\n        n = 3\n        g()  # HERE", "n", kNone},
        Followed{
            "def f():\n    if rank == 0:\n        n = 1\n    else:\n        n = 2\n    g()  # HERE",
            "n", kRank}));

TEST(Dependence, EndsOnCirclesAndOnManyNames) {
  const Lines circle = lines_of("a = b\nb = a\nc()  # HERE");
  EXPECT_EQ(dependence("a", circle, 3), kNone);
  EXPECT_EQ(dependence("rank == 0", circle, 3), kData);  // a name alone is not evidence
  std::string many;
  std::string sum = "x0";
  for (int i = 0; i < 400; ++i) {
    many += "x" + std::to_string(i) + " = x" + std::to_string(i + 1) + " + y\n";
    sum += " + x" + std::to_string(i);
  }
  EXPECT_EQ(dependence(sum, lines_of(many), 1), kData);
}

}  // namespace
}  // namespace ddpdoctor::program
