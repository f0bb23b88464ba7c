// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

struct Deciding {
  const char* source;
  const char* expected;  // conditions, innermost first
};

void PrintTo(const Deciding& c, std::ostream* out) {
  *out << c.source;
}

/// Defines `rank`: its name alone is not evidence.
Lines with_rank(const char* source) {
  return lines_of(std::string(source) +
                  "\nimport torch.distributed as dist\nrank = dist.get_rank()\n");
}

class DecidingBranches : public testing::TestWithParam<Deciding> {};

TEST_P(DecidingBranches, AreThoseThatLeadToTheLine) {
  const Lines lines = with_rank(GetParam().source);
  EXPECT_EQ(conditions(deciding_branches(lines, line_with(lines, "HERE"))), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Enclosing, DecidingBranches,
    testing::Values(
        Deciding{"def f():\n    if a:\n        while b:\n            with c:\n                x()  "
                 "# HERE",
                 "b | a"},
        Deciding{"def f():\n    for i in range(9):\n        x()  # HERE", ""},
        Deciding{"def f():\n    for i in range(9 + rank):\n        x()  # HERE", "range(9 + rank)"},
        Deciding{"if rank == 0:\n    a()\nelif step > 1:\n    x()  # HERE", "step > 1 | rank == 0"},
        Deciding{"if rank == 0:\n    a()\nelse:\n    x()  # HERE", "rank == 0"},
        Deciding{"try:\n    a()\nexcept ValueError as e:\n    x()  # HERE", "ValueError as e"},
        Deciding{"try:\n    a()\nexcept E:\n    b()\nelse:\n    x()  # HERE", ""},
        Deciding{"try:\n    x()  # HERE\nfinally:\n    b()", ""},
        Deciding{"match mode:\n    case 'a' if rank == 0:\n        x()  # HERE",
                 "rank == 0 | mode"},
        Deciding{"if rank == 0: x()  # HERE", "rank == 0"},
        Deciding{"def f():\n    if a:\n        def g():\n            x()  # HERE", ""}));

INSTANTIATE_TEST_SUITE_P(
    Exits, DecidingBranches,
    testing::Values(
        Deciding{"def f():\n    if rank != 0:\n        log()\n        return\n    x()  # HERE",
                 "rank != 0"},
        Deciding{"def f():\n    if rank != 0: return None\n    x()  # HERE", "rank != 0"},
        Deciding{"def f():\n    if rank != 0:\n        log()\n    x()  # HERE", ""},
        Deciding{"def f():\n    for b in it:\n        if not b.ok:\n            continue\n        "
                 "x()  # HERE",
                 "not b.ok"},
        Deciding{"def f():\n    for b in it:\n        if b:\n            break\n    x()  # HERE",
                 ""},
        Deciding{"def f():\n    with a:\n        if rank: sys.exit(1)\n    x()  # HERE", "rank"},
        Deciding{"def f():\n    if a:\n        b()\n    else:\n        return\n    x()  # HERE",
                 "a"},
        Deciding{"def f():\n    if rank == 0:\n        raise E()\n    x()  # HERE", ""},
        Deciding{"def f():\n    if a:\n        return 1\n    elif b:\n        x()  # HERE",
                 "b | a"},
        Deciding{"def g():\n    if rank: return\ndef f():\n    x()  # HERE", ""},
        Deciding{"def f():\n    def g():\n        if rank: return\n    x()  # HERE", ""},
        Deciding{"def f():\n    assert n > 3\n    assert rank == 0, 'no'\n    x()  # HERE",
                 "rank == 0"},
        Deciding{"def f():\n    if rank:\n        with a:\n            return\n    for b in c:\n   "
                 "     x()  # HERE",
                 "rank"}));

INSTANTIATE_TEST_SUITE_P(
    Inline, DecidingBranches,
    testing::Values(Deciding{"y = evaluate() if rank == 0 else None  # HERE", "rank == 0"},
                    Deciding{"y = None if rank else evaluate()  # HERE", "rank"},
                    Deciding{"rank == 0 and dist.barrier()  # HERE", "rank == 0"},
                    Deciding{"rank != 0 or dist.barrier()  # HERE", "rank != 0"},
                    Deciding{"return (dist.barrier() if is_main else 0)  # HERE", "is_main"},
                    Deciding{"dist.all_reduce(a if b else c)  # HERE", ""},
                    Deciding{"y = [f(x) for x in z if x]  # HERE", ""},
                    Deciding{"y = lambda: f() if a else g()  # HERE", ""},
                    Deciding{"if rank == 0 and dist.all_reduce(x):  # HERE\n    y()", "rank == 0"},
                    Deciding{"with a() if k else b():  # HERE\n    y()", "k"},
                    Deciding{"a and f() or c  # HERE", "a"},
                    Deciding{"y = (rank == 0 and\n     dist.barrier())  # HERE", "rank == 0"}));

TEST(DecidingBranchesOfALine, AreUnknownWhereTheLineIsUnknown) {
  EXPECT_TRUE(deciding_branches({}, 3).empty());
  EXPECT_TRUE(separating_branch({}, 3, 4) == std::nullopt);
}

struct Separating {
  const char* source;     // lines A and B are marked
  const char* condition;  // nullptr: no condition separates them
};

void PrintTo(const Separating& c, std::ostream* out) {
  *out << c.source;
}

class SeparatingBranch : public testing::TestWithParam<Separating> {};

TEST_P(SeparatingBranch, LeadsToOneLineAndNotToTheOther) {
  const Lines lines = with_rank(GetParam().source);
  const int a = line_with(lines, "# A");
  const int b = line_with(lines, "# B");
  for (const auto& found : {separating_branch(lines, a, b), separating_branch(lines, b, a)}) {
    EXPECT_EQ(found ? found->condition : "nothing",
              GetParam().condition ? GetParam().condition : "nothing");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Branches, SeparatingBranch,
    testing::Values(
        Separating{"def f():\n    if rank == 0:\n        x()  # A\n    y()  # B", "rank == 0"},
        Separating{"def f():\n    if rank == 0:\n        x()  # A\n    else:\n        y()  # B",
                   "rank == 0"},
        Separating{"def f():\n    if a:\n        x()\n    elif b:\n        x()  # A\n    else:\n   "
                   "     y()  # B",
                   "b"},
        Separating{"def f():\n    if a:\n        if rank: x()  # A\n    else:\n        y()  # B",
                   "a"},
        Separating{
            "def f():\n    if rank == 0:\n        if verbose:\n            x()  # A\n    y()  # B",
            "rank == 0"},
        Separating{"def f():\n    try:\n        x()  # A\n    except E:\n        y()  # B", "E"},
        Separating{"def f():\n    match m:\n        case 1:\n            x()  # A\n        case "
                   "2:\n            y()  # B",
                   "m"},
        Separating{"def f():\n    x()  # A\n    y()  # B", nullptr},
        Separating{"def f():\n    x()  # A\ndef g():\n    if rank: y()  # B", nullptr},
        Separating{"def f():\n    if one:\n        x()  # A\n    if other:\n        y()  # B",
                   "one"},
        Separating{"def f():\n    z() if rank == 0 else None  # A\n    y()  # B", "rank == 0"}));

INSTANTIATE_TEST_SUITE_P(
    LoopsAndExits, SeparatingBranch,
    testing::Values(
        Separating{"def f():\n    for b in it:\n        x()  # A\n        if loss < 3:\n           "
                   " break\n    y()  # B",
                   "loss < 3"},
        Separating{"def f():\n    for b in it:\n        x()  # A\n    y()  # B", "it"},
        Separating{"def f():\n    for i in range(5 + rank):\n        x()  # A\n        if bad(x): "
                   "break\n    y()  # B",
                   "range(5 + rank)"},
        Separating{"def f():\n    while True:\n        x()  # A\n    y()  # B", nullptr},
        Separating{"def f():\n    for b in it:\n        x()  # A\n        if bad(b): continue\n    "
                   "    y()  # B",
                   "bad(b)"},
        Separating{"def f():\n    x()  # A\n    if rank != 0:\n        return\n    y()  # B",
                   "rank != 0"},
        Separating{"def f():\n    x()  # A\n    if bad:\n        return\n    y()  # B", nullptr}));

TEST(SeparatingBranchOfWhoIsBehind, LeadsThere) {
  const Lines lines = lines_of(R"(
def f():
    for x in xs:
        if early:
            x()  # A
        if done:
            break
        if late:
            y()  # B
)");
  const int a = line_with(lines, "# A");
  const int b = line_with(lines, "# B");
  const auto condition = [&](std::optional<int> behind) {
    const auto found = separating_branch(lines, a, b, behind);
    return found ? found->condition : std::string();
  };
  EXPECT_EQ(condition(a), "early");
  EXPECT_EQ(condition(b), "late");
  EXPECT_EQ(separating_branch(lines, a, b)->condition, "early");
}

TEST(RankDecorator, IsFoundAmongOthers) {
  const Lines lines = lines_of(R"(
@functools.cache
@rank_zero_only
def save(self):
    dist.barrier()

@accelerator.on_main_process
def log(): print(1)

@torch.no_grad()
def evaluate():
    run()
)");
  EXPECT_EQ(rank_decorator(lines, line_with(lines, "barrier"))->text, "@rank_zero_only");
  EXPECT_EQ(rank_decorator(lines, line_with(lines, "def log"))->condition,
            "accelerator.on_main_process");
  EXPECT_FALSE(rank_decorator(lines, line_with(lines, "run()")));
}

}  // namespace
}  // namespace ddpdoctor::program
