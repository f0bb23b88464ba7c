// SPDX-License-Identifier: Apache-2.0
// Where values come from; the same program in many spellings.
#include "collector/program/origin/origin.h"

#include <string>

#include "collector/program/origin/items.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

Origin asked_at(const Sources& sources, const std::string& file, std::string_view condition,
                std::string_view mark = "HERE") {
  const SourceText& text = sources.at(file);
  return origin_of(condition, {.text = &text, .line = line_with(text, mark)}, sources);
}

struct Case {
  const char* text;
  const char* condition;
  Source expected;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.text << " ?? " << c.condition;
}

class Origins : public testing::TestWithParam<Case> {};

TEST_P(Origins, AreWhatTheProgramSays) {
  const Sources sources{{"train.py", source(GetParam().text)}};
  const Origin origin = asked_at(sources, "train.py", GetParam().condition);
  EXPECT_EQ(name_of(origin.source), name_of(GetParam().expected));
}

constexpr auto kRank = Source::kRank;
constexpr auto kData = Source::kData;
constexpr auto kSame = Source::kUniform;
constexpr auto kUnknown = Source::kUnknown;

INSTANTIATE_TEST_SUITE_P(
    CalledObjects, Origins,
    testing::Values(
        Case{"import torch.distributed as dist\nclass Net:\n    def forward(self, x):\n"
             "        a()  # HERE\n\ndef main():\n    net = Net()\n    net(dist.get_rank())\n",
             "x == 0", kRank},
        Case{"import torch.distributed as dist\nclass Net:\n    def forward(self, x):\n"
             "        a()  # HERE\n\ndef main():\n    net = Other()\n    net(dist.get_rank())\n",
             "x == 0", kUnknown}));

INSTANTIATE_TEST_SUITE_P(
    Libraries, Origins,
    testing::Values(
        Case{"import torch.distributed as x\na()  # HERE", "x.get_rank() == 0", kRank},
        Case{"from torch import distributed\na()  # HERE", "distributed.get_rank()", kRank},
        Case{"from torch.distributed import get_rank as q\na()  # HERE", "q() > 1", kRank},
        Case{"import os\na()  # HERE", "int(os.environ['RANK']) == 0", kRank},
        Case{"import os\na()  # HERE", "os.environ.get('LOCAL_RANK', '0') == '0'", kRank},
        Case{"from os import environ as e\na()  # HERE", "e['RANK']", kRank},
        Case{"import os\na()  # HERE", "os.getenv('SLURM_PROCID') == '0'", kRank},
        Case{"from torch.distributed import get_rank\nr = get_rank()\nown = f()[r::2]\na()  # HERE",
             "own", kData},
        Case{"from torch.distributed import get_rank\nr = get_rank()\na()  # HERE",
             "roles[r] == 'chief'", kRank},
        Case{"import os\na()  # HERE", "os.environ['MODE'] == 'fast'", Source::kEnvironment},
        Case{"import os\na()  # HERE", "'RANK' in os.environ", Source::kEnvironment},
        Case{"import os\na()  # HERE", "int(os.environ.get('RANK', -1)) != -1", kSame},
        Case{"from accelerate import Accelerator\nz = Accelerator()\na()  # HERE",
             "z.is_main_process", kRank},
        Case{"import time\na()  # HERE", "time.time() > 3", Source::kClock},
        Case{"from time import monotonic as m\nt = m()\na()  # HERE", "m() - t > 9",
             Source::kClock},
        Case{"import random\na()  # HERE", "random.random() < 0.5", Source::kRandom},
        Case{"import os\np = os.path\na()  # HERE", "os.path.exists(f)", Source::kFiles},
        Case{"from pathlib import Path\nf = Path('a')\na()  # HERE", "f.exists()", Source::kFiles},
        Case{"a()  # HERE", "loss.item() < best", kData},
        Case{"import torch.distributed as d\na()  # HERE", "d.get_world_size() > 1", kSame},
        Case{"import torch\na()  # HERE", "torch.cuda.is_available()", kSame},
        Case{"import argparse\np = argparse.ArgumentParser()\nargs = p.parse_args()\na()  # HERE",
             "args.anything", kSame},
        Case{"import argparse\np = argparse.ArgumentParser()\nargs = p.parse_args()\n"
             "import os\nargs.r = int(os.environ['RANK'])\na()  # HERE",
             "args.r == 0", kRank}));

INSTANTIATE_TEST_SUITE_P(
    OfItsOwn, Origins,
    testing::Values(
        Case{"import signal\nstop = False\ndef note(*_):\n    global stop\n    stop = True\n"
             "signal.signal(signal.SIGTERM, note)\na()  # HERE",
             "stop", Source::kSignal},
        Case{"import signal\nclass T:\n    def __init__(self):\n        self.stop = False\n"
             "        signal.signal(signal.SIGTERM, self.note)\n    def note(self, *_):\n"
             "        self.stop = True\n    def f(self):\n        a()  # HERE",
             "self.stop and step > 3", Source::kSignal},
        Case{"import signal, threading\ne = threading.Event()\n"
             "signal.signal(signal.SIGUSR1, lambda *_: e.set())\na()  # HERE",
             "e.is_set()", Source::kSignal},
        Case{"import asyncio\nq = False\ndef note():\n    global q\n    q = True\n"
             "asyncio.get_running_loop().add_signal_handler(15, note)\na()  # HERE",
             "q", Source::kSignal},
        Case{"from lightning import Trainer\nt = Trainer()\na()  # HERE", "t.received_sigterm",
             Source::kSignal},
        Case{"import threading\nlate = False\ndef note():\n    global late\n    late = True\n"
             "threading.Timer(60, note).start()\na()  # HERE",
             "late", Source::kClock},
        // The same words, but the function is not registered for a signal.
        Case{"stop = False\ndef note(*_):\n    global stop\n    stop = True\nnote()\na()  # HERE",
             "stop", kSame},
        Case{"import signal\nstop = False\ndef note(*_):\n    global stop\n    stop = True\n"
             "def other(*_):\n    pass\nsignal.signal(signal.SIGTERM, other)\na()  # HERE",
             "stop", kSame},
        Case{"import threading\ne = threading.Event()\ndef f():\n    e.set()\na()  # HERE",
             "e.is_set()", kData},
        Case{"import signal, torch, torch.distributed as d\nstop = False\ndef note(*_):\n"
             "    global stop\n    stop = True\nsignal.signal(signal.SIGTERM, note)\ndef f():\n"
             "    flag = torch.tensor(stop)\n    d.all_reduce(flag)\n    a()  # HERE",
             "flag.item()", kSame},
        Case{"import queue\nq = queue.Queue()\na()  # HERE", "q.empty()", Source::kQueue},
        Case{"import queue\nq = queue.Queue()\nx = q.get()\na()  # HERE", "x is None",
             Source::kQueue},
        Case{"import diskcache\nc = diskcache.Cache('x')\na()  # HERE", "c.get(k) is None",
             Source::kCache},
        Case{"a()  # HERE", "cache.hit", kUnknown},
        Case{"a()  # HERE", "queue_is_empty", kUnknown}));

INSTANTIATE_TEST_SUITE_P(
    Spellings, Origins,
    testing::Values(Case{"a()  # HERE", "cfg.tim", kUnknown},
                    Case{"a()  # HERE", "cfg.time", kUnknown},
                    Case{"a()  # HERE", "tree.is_root", kUnknown},
                    Case{"a()  # HERE", "should_save", kUnknown},
                    Case{"a()  # HERE", "rank == 0", kUnknown},
                    Case{"def f(rank):\n    a()  # HERE\nf(3)", "rank == 0", kSame},
                    Case{"time = 3\na()  # HERE", "time", kSame},
                    Case{"def get_rank():\n    return 0\na()  # HERE", "get_rank() == 0", kSame}));

INSTANTIATE_TEST_SUITE_P(
    Assignments, Origins,
    testing::Values(
        Case{"from d import *\ndef f():\n    x = get_rank() == 0\n    a()  # HERE", "x", kRank},
        Case{"import torch.distributed as d\nc = d.get_rank() == 0\nv = c\ndef f():\n    a()  # "
             "HERE",
             "v", kRank},
        Case{"import torch.distributed as d\nclass T:\n    def __init__(self):\n"
             "        self.w = d.get_rank() == 0\n    def f(self):\n        a()  # HERE",
             "self.w", kRank},
        Case{"import torch.distributed as d\ndef w():\n    return d.get_rank() == 0\ndef f():\n"
             "    a()  # HERE",
             "w()", kRank},
        Case{"import torch.distributed as d\nclass T:\n    @property\n    def w(self):\n"
             "        return d.get_rank() == 0\n    def f(self):\n        a()  # HERE",
             "self.w", kRank},
        Case{"import torch.distributed as d\ndef f(x):\n    r = d.get_rank()\n"
             "    loss = x + 0.3 * r\n    a()  # HERE",
             "loss > 1", kUnknown},
        Case{"import torch.distributed as d\ndef f(x):\n    if d.get_rank() == 1:\n        x = []\n"
             "    a()  # HERE",
             "x", kData},
        Case{"import torch.distributed as d\ndef f(x):\n    p, q = d.get_rank() == 0, 3\n"
             "    a()  # HERE",
             "p", kRank},
        Case{"import torch.distributed as d\ndef f(x):\n    p, q = d.get_rank() == 0, 3\n"
             "    a()  # HERE",
             "q", kSame},
        Case{"import torch.distributed as d\ndef f(x):\n    for i in range(3 + d.get_rank()):\n"
             "        a()  # HERE",
             "i", kRank},
        Case{"def f(x):\n    for i in range(x):\n        a()  # HERE", "i % 5 == 0", kSame},
        Case{"def f(x):\n    for i in range(x):\n        a()  # HERE", "i % every == 0", kSame},
        Case{"import torch.distributed as d\ndef f():\n    n = 3\n    n += d.get_rank()\n"
             "    a()  # HERE",
             "n == 4", kRank},
        Case{"a1 = b\nb = a1\na()  # HERE", "a1", kSame},
        Case{"from torch.utils.data import DataLoader\nq = DataLoader(x)\nfor b in q:\n"
             "    a()  # HERE",
             "b is None", kData},
        Case{"from torch.utils.data import DataLoader\nq = DataLoader(x)\na()  # HERE",
             "len(q) > 3", Source::kLength},
        Case{"done = False\ndef f():\n    global done\n    try:\n        g()\n    except OSError:\n"
             "        done = True\n    a()  # HERE",
             "done", Source::kException}));

INSTANTIATE_TEST_SUITE_P(
    Guards, Origins,
    testing::Values(
        Case{
            "import torch.distributed as d\ndef f():\n    stop = False\n    if d.get_rank() == 0:\n"
            "        stop = True\n    a()  # HERE",
            "stop", kRank},
        Case{"def f(loss):\n    stop = False\n    if loss.item() < 3:\n        stop = True\n"
             "    a()  # HERE",
             "stop", kData},
        Case{"import torch.distributed as d\ndef f():\n    if d.get_rank() == 0:\n        n = 3\n"
             "        a()  # HERE",
             "n", kSame},
        Case{"import torch.distributed as d\ndef f():\n    if d.get_rank() == 0:\n        n = 1\n"
             "    else:\n        n = 2\n    a()  # HERE",
             "n", kRank},
        Case{"import torch.distributed as d\ndef w():\n    if d.get_rank() != 0:\n"
             "        return False\n    return True\na()  # HERE",
             "w()", kRank},
        Case{"import torch, torch.distributed as d\ndef f(loss):\n    s = "
             "torch.tensor(loss.item())\n"
             "    d.all_reduce(s)\n    a()  # HERE",
             "s > 0", kSame}));

INSTANTIATE_TEST_SUITE_P(
    Callers, Origins,
    testing::Values(
        Case{"import torch.distributed as d\ndef f(chosen):\n    a()  # HERE\nf(d.get_rank() == 0)",
             "chosen", kRank},
        Case{"import torch.distributed as d\ndef f(*, chosen=False):\n    a()  # HERE\n"
             "f(chosen=d.get_rank() == 0)",
             "chosen", kRank},
        Case{"def f(chosen=False):\n    a()  # HERE\nf()", "chosen", kSame},
        Case{"def f(chosen):\n    a()  # HERE", "chosen", kUnknown},
        Case{"import torch.multiprocessing as mp\ndef f(i, n):\n    a()  # HERE\n"
             "mp.spawn(f, args=(4,), nprocs=4)",
             "i == 0", kRank},
        Case{"import torch.multiprocessing as mp\ndef f(i, n):\n    a()  # HERE\n"
             "mp.spawn(f, args=(4,), nprocs=4)",
             "n == 0", kSame},
        Case{"import torch.distributed as d\nclass C:\n    def __init__(self, lead):\n"
             "        self.lead = lead\nclass T:\n    def f(self):\n        a()  # HERE\n"
             "t = C(d.get_rank() == 0)",
             "self.c.lead", kRank},
        Case{"import torch.distributed as d\nfrom dataclasses import dataclass\n@dataclass\nclass "
             "C:\n"
             "    n: int\n    lead: bool\nc = C(3, d.get_rank() == 0)\na()  # HERE",
             "c.lead", kRank},
        Case{"import torch.distributed as d\nfrom dataclasses import dataclass\n@dataclass\nclass "
             "C:\n"
             "    n: int\n    lead: bool\nc = C(3, d.get_rank() == 0)\na()  # HERE",
             "c.n == 3", kSame}));

TEST(Origins, GoThroughOtherFiles) {
  const Sources sources{
      {"/p/train.py", source("from lib.flags import writer as w, State\nimport lib.flags as g\n"
                             "s = State()\na()  # HERE")},
      {"/p/lib/flags.py",
       source("import torch.distributed as d\nlead = d.get_rank() == 0\ndef writer():\n"
              "    return lead\nclass State:\n    def __init__(self):\n        self.go = lead\n")}};
  for (const char* condition : {"w()", "g.lead", "g.writer()", "s.go"}) {
    const Origin origin = asked_at(sources, "/p/train.py", condition);
    EXPECT_EQ(origin.source, kRank) << condition;
    ASSERT_FALSE(origin.chain.empty()) << condition;
    EXPECT_EQ(origin.chain.back().file, "/p/lib/flags.py") << condition;
    EXPECT_EQ(origin.chain.back().line, 2) << condition;
  }
}

TEST(Origins, PreferTheCallOnTheStack) {
  const Sources sources{
      {"train.py", source("import torch.distributed as d\ndef f(x):\n    a()  # HERE\n"
                          "def one():\n    f(d.get_rank() == 0)  # ONE\n"
                          "def two():\n    f(True)  # TWO\n")}};
  const SourceText& text = sources.at("train.py");
  const auto called_from = [&](std::string_view mark) {
    const CallString callers{{.text = &text, .function = "f", .line = line_with(text, mark)}};
    return origin_of("x", {.text = &text, .line = 3, .callers = &callers}, sources).source;
  };
  EXPECT_EQ(called_from("ONE"), kRank);
  EXPECT_EQ(called_from("TWO"), kSame);
}

TEST(Origins, OfALibrarysAttributeRestOnItsName) {
  const Sources sources{{"train.py", source("def f(acc):\n    a()  # HERE")}};
  const Origin origin = asked_at(sources, "train.py", "acc.is_main_process");
  EXPECT_EQ(origin.source, kRank);
  EXPECT_TRUE(origin.by_name);
  EXPECT_EQ(asked_at(sources, "train.py", "acc.is_root").source, kUnknown);
}

TEST(Origins, EndOnCirclesAndOnManyNames) {
  std::string many;
  std::string sum = "x0";
  for (int i = 0; i < 400; ++i) {
    many += "x" + std::to_string(i) + " = x" + std::to_string(i + 1) + " + y\n";
    sum += " + x" + std::to_string(i);
  }
  const Sources sources{{"train.py", source(many + "a()  # HERE")}};
  EXPECT_EQ(asked_at(sources, "train.py", sum).source, kUnknown);
}

TEST(Origins, OfWhatALibrarysMethodReturnsToTheMethodThatOverridesIt) {
  const Sources sources{
      {"train.py", source("from transformers import Trainer\nclass Kept:\n    last = 9.0\n"
                          "class Mine(Trainer):\n    def training_step(self, *a):\n"
                          "        loss = super().training_step(*a)\n"
                          "        self.kept.last = loss.item()\n        return loss\n"
                          "class Base:\n    def size(self):\n        return 4\n"
                          "class Derived(Base):\n    def size(self):\n"
                          "        return super().size()\n"
                          "def f(kept):\n    a()  # HERE\n")}};
  EXPECT_EQ(asked_at(sources, "train.py", "kept.last < 0.1").source, kData);
  EXPECT_EQ(asked_at(sources, "train.py", "Derived().size() > 3").source, kSame);
}

TEST(Origins, OfAnAttributeThatIsSetFromOutsideItsClass) {
  const Sources sources{
      {"train.py",
       source("class Kept:\n    last = 9.0\nclass Other:\n    last = 1\n"
              "class Step:\n    def __init__(self, *a, kept):\n        self.kept = kept\n"
              "    def step(self, loss):\n        self.kept.last = loss.item()\n"
              "kept = Kept()\nstep = Step(1, 2, kept=kept)\nother = Other()\na()  # HERE\n")}};
  EXPECT_EQ(asked_at(sources, "train.py", "kept.last < 0.1").source, kData);
  EXPECT_EQ(asked_at(sources, "train.py", "other.last < 0.1").source, kSame);
}

TEST(Items, AreOfBatchesOrOfElements) {
  const auto of = [](const std::string& before, const std::string& loop) {
    const Sources sources{{"t.py", source(before + "\nfor x in " + loop + ":\n    pass")}};
    const SourceText& text = sources.at("t.py");
    return items_of(text, line_with(text, "for x in"), sources);
  };
  EXPECT_EQ(of("from torch.utils.data import DataLoader\nq = DataLoader(y)", "q"), Items::kBatches);
  EXPECT_EQ(of("from torch.utils.data import DataLoader\nq = DataLoader(y)", "enumerate(q)"),
            Items::kBatches);
  EXPECT_EQ(of("", "range(n)"), Items::kBatches);
  EXPECT_EQ(of("", "stream"), Items::kUnknown);
  EXPECT_EQ(of("", "metrics"), Items::kUnknown);
  EXPECT_EQ(of("", "m.parameters()"), Items::kElements);
  EXPECT_EQ(of("w = []", "w"), Items::kElements);
  EXPECT_EQ(of("", "sorted(d.items())"), Items::kElements);
}

TEST(Items, AreReducedOneByOne) {
  const auto each = [](const std::string& loop, const std::string& call) {
    const Sources sources{
        {"t.py",
         source("import torch.distributed as d\ndef mean(t):\n    d.all_reduce(t)\n    return t\n" +
                loop + ":\n    " + call + "  # CALL")}};
    const SourceText& text = sources.at("t.py");
    return reduces_each(text, 5, line_with(text, "CALL"), sources);
  };
  EXPECT_TRUE(each("for k in out", "d.all_reduce(out[k])"));
  EXPECT_TRUE(each("for p in out", "d.all_reduce(p.grad)"));
  EXPECT_TRUE(each("for k, v in out", "mean(v)"));
  EXPECT_FALSE(each("for x in out", "d.all_reduce(total)"));
  EXPECT_FALSE(each("for i in out", "d.all_reduce(other[i])"));
  EXPECT_FALSE(each("for batch in out", "model(batch)"));
}

struct Length {
  const char* before;
  const char* loop;
  bool everywhere;
};

void PrintTo(const Length& c, std::ostream* out) {
  *out << c.before << " ?? " << c.loop;
}

class Lengths : public testing::TestWithParam<Length> {};

TEST_P(Lengths, AreAlikeWhereNothingOfTheRankGoesIn) {
  const Sources sources{{"t.py", source("import torch\nimport torch.distributed as d\n" +
                                        std::string(GetParam().before) + "\nfor x in " +
                                        GetParam().loop + ":\n    pass")}};
  const SourceText& text = sources.at("t.py");
  EXPECT_EQ(is_as_long_everywhere(text, line_with(text, "for x in"), sources),
            GetParam().everywhere);
}

INSTANTIATE_TEST_SUITE_P(
    Alike, Lengths,
    testing::Values(Length{"", "range(300)", true}, Length{"q = 300", "range(q)", true},
                    Length{"m = torch.nn.Linear(1, 1)\nq = list(m.parameters())", "q", true},
                    Length{"m = torch.nn.Linear(1, 1)", "m.named_parameters()", true},
                    Length{"", "unseen.parameters()", true},
                    Length{"q = []\nq.append(1)", "enumerate(q)", true},
                    Length{"q = [1, d.get_rank()]", "d.batch_isend_irecv(q)", true},
                    Length{"", "range(d.get_world_size())", true}));

INSTANTIATE_TEST_SUITE_P(
    NotKnownToBe, Lengths,
    testing::Values(
        Length{"", "q", false}, Length{"", "range(q)", false},
        Length{"", "range(d.get_rank())", false},
        Length{"q = [1]\nif d.get_rank():\n    q.append(2)", "d.batch_isend_irecv(q)", false},
        Length{"class L:\n    def __iter__(self):\n        yield 1\nq = L()", "q", false},
        Length{"q = torch.utils.data.DataLoader(y)", "range(len(q))", false},
        Length{"m = torch.nn.Linear(1, 1)", "filter(lambda p: p.grad, m.parameters())", false},
        Length{"q = []\nfor y in z:\n    if y.sum() > 3:\n        q.append(y)", "q", false},
        Length{"q = {}\nif d.get_rank() == 0:\n    q['a'] = 1", "q.items()", false}));

TEST(Origins, PutInRoundByRoundIsDataPutInOnceIsAChoice) {
  const std::string before = "import torch.distributed as d\nq = []\n";
  const std::string mine = "if d.get_rank() == 0:\n    q.append(1)\n";
  const std::string often = "for y in z:\n    if d.get_rank() == 0:\n        q.append(3)\n";
  const auto asked = [](const std::string& text) {
    return asked_at({{"train.py", source(text + "a()  # HERE")}}, "train.py", "not q").source;
  };
  EXPECT_EQ(asked(before + mine), kRank);
  EXPECT_EQ(asked(before + often), kData);
}

}  // namespace
}  // namespace ddpdoctor::program
