// SPDX-License-Identifier: Apache-2.0
// What swallows an exception.
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/exits.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

std::string swallowing(const std::string& source) {
  const Lines lines = lines_of(source);
  return texts(swallowing_clauses(lines, line_with(lines, "HERE"), {{"/srv/train.py", lines}}));
}

TEST(Swallowing, IsAnExceptThatGoesOn) {
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept KeyError:\n  raise\n"
                       "except RuntimeError as e:\n  if not oom(e):\n    raise\n  n += 1\n"),
            "except RuntimeError as e");
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept: pass\n"), "except");
  EXPECT_EQ(swallowing("with contextlib.suppress(OSError):\n  f()  # HERE\n"),
            "with contextlib.suppress(OSError)");
}

TEST(Swallowing, IsAContextOfTheUserThatReturnsTrueOrCatchesAtItsYield) {
  const std::string guard =
      "class Guard:\n  def __enter__(self): return self\n  def __exit__(self, kind, value, "
      "trace):\n"
      "    if kind is ValueError:\n      return True\n    return False\n\n"
      "class Engine:\n  def __init__(self):\n    self.guard = Guard()\n  def run(self):\n"
      "    with self.guard as g:\n      f()  # HERE\n";
  EXPECT_EQ(swallowing(guard), "with self.guard as g");
  const std::string manager =
      "import contextlib\n@contextlib.contextmanager\ndef tolerant():\n  try:\n    yield\n  except "
      "ValueError:\n"
      "    pass\n\ndef run():\n  with tolerant():\n    f()  # HERE\n";
  EXPECT_EQ(swallowing(manager), "with tolerant()");
}

TEST(Swallowing, IsNoContextOfTheUserThatLetsExceptionsPass) {
  EXPECT_EQ(swallowing("class Timer:\n  def __exit__(self, *what):\n    self.end = now()\n"
                       "    return False\n\nwith Timer():\n  f()  # HERE\n"),
            "");
  EXPECT_EQ(swallowing("class Timer:\n  def __exit__(self, *what):\n    if done:\n      return\n"
                       "    note()\n\nwith Timer():\n  f()  # HERE\n"),
            "");
  EXPECT_EQ(swallowing("from contextlib import contextmanager\n@contextmanager\ndef timed():\n  "
                       "try:\n    yield\n  finally:\n    note()\n"
                       "\nwith timed():\n  f()  # HERE\n"),
            "");
}

TEST(Swallowing, IsNoTryThatRaisesAgainOrCatchesNothing) {
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nfinally:\n  g()\n"), "");
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept Exception:\n  log()\n  raise\n"), "");
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept Exception:\n  sys.exit(1)\n"), "");
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept Exception as e:\n  if a(e):\n    raise\n"
                       "  elif b(e):\n    os._exit(1)\n  else:\n    raise X from e\n"),
            "");
  EXPECT_EQ(swallowing("try:\n  f()  # HERE\nexcept StopIteration:\n  pass\n"), "");
  EXPECT_EQ(swallowing("try:\n  a()\nexcept Exception:\n  f()  # HERE\n"), "");
  EXPECT_EQ(swallowing("with contextlib.suppress(ImportError):\n  f()  # HERE\n"), "");
}

TEST(Swallowing, KnowsWhatIsNoFailure) {
  const auto catches = [](const char* condition) {
    Block clause;
    clause.kind = BlockKind::kExcept;
    clause.condition = condition;
    return catches_failures(clause);
  };
  EXPECT_TRUE(catches(""));
  EXPECT_TRUE(catches("Exception as e"));
  EXPECT_TRUE(catches("(StopIteration, OSError)"));
  EXPECT_FALSE(catches("(StopIteration, queue.Empty) as end"));
  EXPECT_FALSE(catches("ImportError"));
}

}  // namespace
std::string retried(const std::string& source) {
  const Lines lines = lines_of(source);
  const auto loop = retry_loop(lines, line_with(lines, "HERE"));
  return loop ? loop->text : std::string();
}

TEST(RetryLoop, IsAroundATryWhoseExceptGoesOn) {
  EXPECT_EQ(retried("while True:\n  try:\n    return f()\n  except OSError:\n    log()\n"
                    "    sleep(1)  # HERE\n"),
            "while True");
  EXPECT_EQ(retried("for n in range(5):\n  try:\n    return f()\n  except OSError:\n"
                    "    if n == 4:\n      raise\n    sleep(n)  # HERE\n    continue\n"),
            "for n in range(5)");
}

TEST(RetryLoop, IsNoneThatTheExceptLeavesOrThatItRuns) {
  EXPECT_EQ(retried("for x in data:\n  try:\n    f()\n  except OSError:\n    clean()  # HERE\n"
                    "    raise\n"),
            "");
  EXPECT_EQ(retried("for x in data:\n  try:\n    f()\n  except OSError:\n    clean()  # HERE\n"
                    "    break\n"),
            "");
  EXPECT_EQ(retried("try:\n  f()\nexcept OSError:\n  while True:\n    sleep(1)  # HERE\n"), "");
  EXPECT_EQ(retried("while True:\n  try:\n    sleep(1)  # HERE\n  except OSError:\n    pass\n"),
            "");
}

}  // namespace ddpdoctor::program
