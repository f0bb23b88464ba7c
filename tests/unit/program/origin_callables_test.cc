// SPDX-License-Identifier: Apache-2.0
// Functions as values: if one of them is called, it is followed.
#include <string>

#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

constexpr const char* kHead = R"(
import functools
import torch.distributed as dist

def chief():
    return dist.get_rank() == 0

def often(step):
    return step % 10 == 9
)";

std::string_view source_of(const std::string& text, const char* condition) {
  const Sources sources{{"train.py", source(kHead + text)}};
  const SourceText& train = sources.at("train.py");
  return name_of(
      origin_of(condition, {.text = &train, .line = line_with(train, "HERE")}, sources).source);
}

const std::string_view kOfRank = name_of(Source::kRank);
const std::string_view kOfAll = name_of(Source::kUniform);

TEST(OriginOfCallables, FollowsAFunctionThatAnInstanceWasGiven) {
  const std::string due = R"(
class Due:
    def __init__(self, given_step, given_test):
        self.step = given_step
        self.test = given_test

    @property
    def holds(self):
        return self.step % 10 == 9 and self.test()

def fit():
    for step in range(100):
        if Due(step, WHOSE).holds:
            reduce(loss)  # HERE
)";
  const auto with = [&due](const std::string& whose) {
    return std::string(due).replace(due.find("WHOSE"), 5, whose);
  };
  EXPECT_EQ(source_of(with("chief"), "Due(step, chief).holds"), kOfRank);
  EXPECT_EQ(source_of(with("lambda: step > 3"), "Due(step, x).holds"), kOfAll);
}

TEST(OriginOfCallables, FollowsTablesLambdasPartialsAndConditionals) {
  EXPECT_EQ(source_of("T = {'a': often, 'b': chief}\nf()  # HERE\n", "T[key]()"), kOfRank);
  EXPECT_EQ(source_of("T = {'a': often}\nf()  # HERE\n", "T['a'](3)"), kOfAll);
  EXPECT_EQ(source_of("g = lambda: dist.get_rank() > 1\nf()  # HERE\n", "g()"), kOfRank);
  EXPECT_EQ(source_of("g = functools.partial(chief)\nf()  # HERE\n", "g()"), kOfRank);
  EXPECT_EQ(source_of("g = chief if True else often\nf()  # HERE\n", "g()"), kOfRank);
  EXPECT_EQ(source_of("f()  # HERE\n", "any(map(lambda k: dist.get_rank() == k, [0, 1]))"),
            kOfRank);
}

TEST(OriginOfCallables, FollowsAnInstanceThatIsCalled) {
  EXPECT_EQ(source_of("class Who:\n    def __call__(self):\n        return chief()\nwho = Who()\n"
                      "f()  # HERE\n",
                      "who()"),
            kOfRank);
}

TEST(OriginOfCallables, FollowsAMethodThatWasPassed) {
  EXPECT_EQ(source_of(R"(
class Roles:
    def first(self):
        return dist.get_rank() == 0

def run(gate):
    if gate():
        reduce(loss)  # HERE

run(Roles().first)
)",
                      "gate()"),
            kOfRank);
}

TEST(OriginOfCallables, FollowsWhatAComputedNameCanMean) {
  const std::string who =
      "class Who:\n    @staticmethod\n    def on_first(state):\n        return chief()\n"
      "    @staticmethod\n    def on_all(state):\n        return True\n"
      "    @staticmethod\n    def off_all(state):\n        return 3 > 2\n"
      "class Draws:\n    def __init__(self, who):\n        self.who = getattr(Who, NAME)\n"
      "    def turn(self, step, state):\n        return step % 9 == 0 and self.who(state)\n"
      "    def draw(self, step, state):\n        f()  # HERE\n";
  const auto with = [&who](const std::string& name) {
    return std::string(who).replace(who.find("NAME"), 4, name);
  };
  EXPECT_EQ(source_of(with("who"), "self.turn(step, state)"), kOfRank);
  EXPECT_EQ(source_of(with("f'on_{who}'"), "self.turn(step, state)"), kOfRank);
  EXPECT_NE(source_of(with("f'off_{who}'"), "self.turn(step, state)"), kOfRank);
}

// A framework calls the user's hooks by name, on an object whose class it does not know.
TEST(OriginOfCallables, FollowsAHookThatACallNames) {
  const std::string hooks = R"(
class Net:
    def before_batch(self, batch):
        return 7 if chief() else None
    def after_batch(self, batch):
        return 3

def call_hook(trainer, hook, *args, module=None):
    module = module or trainer.module
    run = getattr(module, hook)
    if not callable(run):
        return None
    with trainer.timed(hook):
        output = run(*args)
    return output

def advance(trainer, batch):
    skip = False
    if batch is not None:
        answer = call_hook(trainer, "NAME", batch)
        skip = answer == 7
        f()  # HERE
)";
  const auto with = [&hooks](const std::string& name) {
    return std::string(hooks).replace(hooks.find("NAME"), 4, name);
  };
  EXPECT_EQ(source_of(with("before_batch"), "skip"), kOfRank);
  EXPECT_NE(source_of(with("after_batch"), "skip"), kOfRank);
}

/// The rank's own line is the value, but whether it is None is whether reading it failed.
TEST(OriginOfCallables, OfATestForNoneIsWhatDecidesWhichResultIsReturned) {
  const std::string helpers = R"(
def number_of(text):
    try:
        return float(text)
    except ValueError:
        return None

def missing(value):
    return value is None

T = {'missing': lambda value: value is None}

def fit():
    lines = [str(n) for n in range(40)]
    if dist.get_rank() == 1:
        lines[17] = 'n/a'
    for line in lines:
        value = number_of(line)
        reduce(value)  # HERE
)";
  for (const char* condition :
       {"value is None", "value is not None", "missing(value)", "T['missing'](value)"}) {
    EXPECT_EQ(source_of(helpers, condition), name_of(Source::kException)) << condition;
  }
  EXPECT_EQ(source_of("r = dist.get_rank()\nf()  # HERE\n", "r is None"), kOfAll);
  EXPECT_EQ(source_of("def g(x):\n  if x.sum() > 3:\n    return None\n  return dist.get_rank()\n"
                      "def h(x):\n  f()  # HERE\n",
                      "made(g(x)) is None"),
            name_of(Source::kUnknown));
}

TEST(Origin, AMethodThatWritesInPlaceChangesTheTensorAsTheTestAroundItSays) {
  EXPECT_EQ(
      source_of("import torch\nx = torch.ones(1)\nfor i in range(9):\n  if torch.rand(1) > 0.5:\n"
                "    x.zero_()\n  f()  # HERE\n",
                "x.any()"),
      name_of(Source::kData));
}

TEST(Origin, NoneOrARandomTensorIsNoneAsItsTestSays) {
  EXPECT_EQ(
      source_of("import torch\nx = None if dist.get_rank() == 1 else torch.randn(4)\nf()  # HERE\n",
                "x is not None"),
      name_of(Source::kData));
}

// `self` of what a decorator puts in the place of a method is an object of the method's class.
TEST(OriginOfCallables, KnowsTheObjectInADecoratorOfMethods) {
  const std::string journal = R"(
def tidy(event):
    @functools.wraps(event)
    def inner(self, state, **kw):
        if self.sink_for(state) is None:
            return state
        return event(self, state, **kw)  # HERE
    return inner

class Journal:
    def sink_for(self, state):
        return print if TEST else None

    @tidy
    def on_log(self, state):
        reduce(state)
)";
  const auto with = [&journal](const std::string& test) {
    return std::string(journal).replace(journal.find("TEST"), 4, test);
  };
  EXPECT_EQ(source_of(with("state.is_world_process_zero"), "self.sink_for(state) is None"),
            kOfRank);
  EXPECT_EQ(source_of(with("chief()"), "self.sink_for(state) is None"), kOfRank);
  EXPECT_NE(source_of(with("True"), "self.sink_for(state) is None"), kOfRank);
}

}  // namespace
}  // namespace ddpdoctor::program
