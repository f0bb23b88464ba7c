// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/locks.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

TEST(Enclosing, NamesEveryHeaderUpToTheFunction) {
  const Lines lines = lines_of(R"(
class Trainer:
    def fit(self, loader):
        for epoch in range(10):
            with torch.no_grad():
                if (self.rank == 0 and
                        epoch % 2):   # now and then
                    dist.barrier()  # HERE
            step()
)");
  EXPECT_EQ(texts(enclosing(lines, line_with(lines, "HERE"))),
            "if (self.rank == 0 and epoch % 2) | with torch.no_grad() | for epoch in range(10) | "
            "def fit(self, loader)");
  EXPECT_EQ(conditions(enclosing(lines, line_with(lines, "step()"))), "range(10) | ");
}

TEST(Enclosing, StopsAtTheInnermostFunction) {
  const Lines lines = lines_of("if x:\n    def f():\n        y()\n");
  EXPECT_EQ(texts(enclosing(lines, 3)), "def f()");
}

TEST(Enclosing, GivesAnElseTheConditionsBeforeIt) {
  const Lines lines = lines_of(R"(
if rank == 0:
    a()
elif step > 3:
    b()
else:
    c()
)");
  const auto blocks = enclosing(lines, line_with(lines, "c()"));
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].kind, BlockKind::kElse);
  EXPECT_EQ(blocks[0].condition, "rank == 0 or step > 3");
  EXPECT_EQ(blocks[0].tested, line_with(lines, "elif"));
}

TEST(Enclosing, KnowsOneLineSuitesAndSoftKeywords) {
  const Lines lines = lines_of(R"(
def f(case, match):
    match = case(1)
    if rank == 0: dist.barrier()
    match command.split():
        case ["go", where] if where:
            go()
)");
  EXPECT_EQ(texts(enclosing(lines, line_with(lines, "barrier"))),
            "if rank == 0 | def f(case, match)");
  EXPECT_EQ(texts(enclosing(lines, line_with(lines, "match = "))), "def f(case, match)");
  EXPECT_EQ(texts(enclosing(lines, line_with(lines, "go()"))),
            "case [\"go\", where] if where | match command.split() | def f(case, match)");
}

TEST(Enclosing, WorksOnTheFewLinesOfACapture) {
  const Lines lines = {{57, "    if rank == 0:"}, {58, "        dist.barrier()"}};
  EXPECT_EQ(conditions(enclosing(lines, 58)), "rank == 0");
  EXPECT_TRUE(enclosing(lines, 57).empty());
  EXPECT_TRUE(enclosing(lines, 99).empty());
}

TEST(Enclosing, DoesNotReachOverAGapIntoAFinishedBlock) {
  const Lines lines = {{10, "if rank == 0:"}, {11, "    a()"}, {20, "b()"}, {30, "    c()"}};
  EXPECT_TRUE(enclosing(lines, 30).empty());
}

TEST(Enclosing, KeepsWhatIsKnownAroundAGap) {
  // A try without its clauses, headers without suites, the end of a string that began before the
  // first known line.
  const Lines lines = {{3, "that only waits.\"\"\""},
                       {9, "def f(path):"},
                       {10, "    try:"},
                       {11, "        with a:"},
                       {12, "            x()"},
                       {20, "    for b in c:"},
                       {30, "def g():"},
                       {31, "    if k:"},
                       {40, "        y("},
                       {50, "@decorator"},
                       {51, "z = 1"}};
  EXPECT_EQ(texts(enclosing(lines, 12)), "with a | try | def f(path)");
  EXPECT_EQ(texts(enclosing(lines, 20)), "def f(path)");
  EXPECT_EQ(texts(enclosing(lines, 40)), "if k | def g()");
  EXPECT_EQ(statement_at(lines, 3), "that only waits.\"\"\"");
  EXPECT_EQ(texts(enclosing(lines, 51)), "");
}

TEST(FunctionExtent, IsFirstAndLastLineOfTheFunction) {
  const Lines lines = lines_of("import os\ndef f():\n    a()\n\n    b(\n      1)\nx = 1\n");
  EXPECT_EQ(function_extent(lines, 3), (std::pair{2, 6}));
  EXPECT_FALSE(function_extent(lines, 7));
}

TEST(LoopAround, IsTheInnermost) {
  const Lines lines = lines_of("for a in x:\n    while go:\n        if y:\n            z()\n");
  EXPECT_EQ(loop_around(lines, 4)->condition, "go");
  EXPECT_FALSE(loop_around(lines, 1));
}

TEST(StatementAt, JoinsContinuationLines) {
  const Lines lines = lines_of("x = dist.all_reduce(\n    t,  # tensor\n    group=g)\n");
  EXPECT_EQ(statement_at(lines, 2), "x = dist.all_reduce(t, group=g)");
  EXPECT_EQ(statement_at(lines, 9), "");
}

TEST(LocksHeld, AreOutermostFirst) {
  const Lines lines = lines_of(R"(
lock_a = threading.Lock()
guard = threading.RLock()
def worker(self):
    lock_a.acquire()
    with self._cache_lock as held, open(path):
        with guard:
            x = 1
            self.sem_lock.acquire(timeout=3)
            self.sem_lock.release()
            work()  # HERE
    lock_a.release()
    rest()
)");
  EXPECT_EQ(locks_held(lines, line_with(lines, "HERE")),
            (std::vector<std::string>{"lock_a", "self._cache_lock", "open(path)", "guard"}));
  EXPECT_TRUE(locks_held(lines, line_with(lines, "rest()")).empty());
}

TEST(LocksHeld, AreNotThoseJustWaitedFor) {
  const Lines lines =
      lines_of("def f():\n    with lock_a:\n        with lock_b:\n            pass\n");
  EXPECT_EQ(locks_held(lines, 3), std::vector<std::string>{"lock_a"});
  EXPECT_TRUE(locks_held(lines, 2).empty());
}

TEST(CasesOf, AreThoseOfThisMatchWithWhatTheyDo) {
  const Lines lines = lines_of(
      "def f():\n  match role:\n    case A | B:\n      match x:\n        case 1: y()\n      z()\n"
      "    case [c] if c > 0:\n      pass\n    case _: w()\n  after()\n");
  std::string out;
  for (const Case& one : cases_of(lines, 2)) {
    out +=
        std::to_string(one.line) + "-" + std::to_string(one.last_line) + " " + one.pattern + "; ";
  }
  EXPECT_EQ(out, "3-6 A | B; 7-8 [c] if c > 0; 9-9 _; ");
  EXPECT_TRUE(cases_of(lines, 3).empty());
  EXPECT_TRUE(cases_of(lines, 40).empty());
}

}  // namespace
}  // namespace ddpdoctor::program
