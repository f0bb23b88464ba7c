// SPDX-License-Identifier: Apache-2.0
// What a call does for others hangs on the class of its object, never on the object's name.
#include "collector/program/questions/method_calls.h"

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

/// What the line with "HERE" does.
Told here(std::string_view python, MethodDoes effect) {
  const Sources sources{{"/srv/a.py", source(python)}};
  const SourceText& text = sources.at("/srv/a.py");
  const int line = line_with(text, "HERE");
  return told(calls_on(text, sources, line, line), effect);
}

constexpr auto kTakes = MethodDoes::kTakesWork;
constexpr auto kWakes = MethodDoes::kWakes;
constexpr auto kKey = MethodDoes::kSetsKey;
constexpr auto kFile = MethodDoes::kAsksForFile;

TEST(MethodCalls, AQueueTakesWorkAndADictDoesNot) {
  EXPECT_EQ(here("import queue\ndef f():\n  z = queue.Queue()\n  z.get()  # HERE\n", kTakes),
            Told::kYes);
  EXPECT_EQ(here("from queue import SimpleQueue as S\nz = S()\nz.get()  # HERE\n", kTakes),
            Told::kYes);
  EXPECT_EQ(here("def f():\n  queue = {}\n  queue.get('a')  # HERE\n", kTakes), Told::kNo);
  EXPECT_EQ(here("def f(queue):\n  queue.get()  # HERE\n", kTakes), Told::kUnknown);
  EXPECT_EQ(here("import os\nos.environ.get('A')  # HERE\n", kTakes), Told::kNo);
}

TEST(MethodCalls, TheClassOfAnAttributeIsThatOfItsOwnClass) {
  constexpr std::string_view kTwo = R"(
import queue
class A:
  def __init__(this):
    this.x = None
    this.x = queue.Queue(4)
  def f(this):
    this.x.get()  # A
class B:
  def __init__(self):
    self.x = {}
  def f(self):
    self.x.get('k')  # B
)";
  const Sources sources{{"/srv/a.py", source(kTwo)}};
  const SourceText& text = sources.at("/srv/a.py");
  EXPECT_EQ(told(calls_at(text, sources, line_with(text, "# A")), kTakes), Told::kYes);
  EXPECT_EQ(told(calls_at(text, sources, line_with(text, "# B")), kTakes), Told::kNo);
}

TEST(MethodCalls, AParameterIsWhatItsCallersPass) {
  EXPECT_EQ(here("import queue, threading\ndef f(z):\n  z.put(1)  # HERE\n"
                 "q = queue.Queue()\nthreading.Thread(target=f, args=(q,)).start()\n",
                 kWakes),
            Told::kYes);
  EXPECT_EQ(here("def f(z):\n  z.put(1)  # HERE\nclass Board:\n  def put(self, x):\n"
                 "    self.last = x\nf(Board())\n",
                 kWakes),
            Told::kNo);
  EXPECT_EQ(here("import queue\ndef f(z: queue.Queue):\n  z.put(1)  # HERE\n", kWakes), Told::kYes);
  EXPECT_EQ(here("import queue\ndef f(z: 'queue.Queue | None'):\n  z.put(1)  # HERE\n", kWakes),
            Told::kUnknown);
  EXPECT_EQ(here("import queue\nfrom typing import Optional\n"
                 "def f(z: Optional[queue.Queue] = None):\n  z.put(1)  # HERE\n",
                 kWakes),
            Told::kYes);
  EXPECT_EQ(here("import queue\ndef f(z):\n  z.put(1)  # HERE\nf({})\nf(queue.Queue())\n", kWakes),
            Told::kUnknown);
}

TEST(MethodCalls, AMethodOfTheUserDoesWhatItsBodyDoes) {
  constexpr std::string_view kInbox = R"(
import queue
class Inbox:
  def __init__(self):
    self.held = queue.Queue()
    self.seen = set()
  def put(self, x):
    self.held.put(x)
  def note(self, x):
    self.seen.add(x)
class Mine(queue.Queue):
  pass
)";
  const std::string inbox(kInbox);
  EXPECT_EQ(here(inbox + "def f():\n  z = Inbox()\n  z.put(1)  # HERE\n", kWakes), Told::kYes);
  EXPECT_EQ(here(inbox + "def f():\n  z = Inbox()\n  z.note(1)  # HERE\n", kKey), Told::kNo);
  EXPECT_EQ(here(inbox + "def f():\n  z = Mine()\n  z.put(1)  # HERE\n", kWakes), Told::kYes);
}

TEST(MethodCalls, AStoreSetsKeysAndASetDoesNot) {
  EXPECT_EQ(
      here("import torch.distributed as d\nz = d.TCPStore('h', 1)\nz.add('k', 1)  # HERE\n", kKey),
      Told::kYes);
  EXPECT_EQ(here("z = set()\nz.add('k')  # HERE\n", kKey), Told::kNo);
  EXPECT_EQ(here("import threading\nz = threading.Event()\nz.set()  # HERE\n", kKey), Told::kNo);
  EXPECT_EQ(
      here("from contextvars import ContextVar\nz = ContextVar('a')\nz.set(1)  # HERE\n", kWakes),
      Told::kNo);
}

TEST(MethodCalls, ObjectsOfContextsTuplesAndContainersAreKnown) {
  EXPECT_EQ(here("import multiprocessing as m\nc = m.get_context('spawn')\nz = c.Queue()\n"
                 "z.get()  # HERE\n",
                 kTakes),
            Told::kYes);
  EXPECT_EQ(here("import multiprocessing as m\na, b = m.Pipe()\nb.recv()  # HERE\n", kTakes),
            Told::kYes);
  EXPECT_EQ(
      here("import queue\nall = [queue.Queue() for _ in range(3)]\nall[1].get()  # HERE\n", kTakes),
      Told::kYes);
  EXPECT_EQ(here("import queue\nall = [queue.Queue() for _ in range(3)]\nfor z in all:\n"
                 "  z.put(1)  # HERE\n",
                 kWakes),
            Told::kYes);
  EXPECT_EQ(here("import concurrent.futures as c\np = c.ThreadPoolExecutor()\nz = p.submit(f)\n"
                 "z.set_result(1)  # HERE\n",
                 kWakes),
            Told::kYes);
}

TEST(MethodCalls, CallsThatAskForAFileAreTheLibrarys) {
  EXPECT_EQ(here("from os.path import exists as there\nthere(p)  # HERE\n", kFile), Told::kYes);
  EXPECT_EQ(here("import os.path\nos.path.exists(p)  # HERE\n", kFile), Told::kYes);
  EXPECT_EQ(here("open(p)  # HERE\n", kFile), Told::kYes);
  EXPECT_EQ(here("def open(p):\n  return p\nopen(q)  # HERE\n", kFile), Told::kNo);
  EXPECT_EQ(here("from pathlib import Path\nz = Path('a')\nz.exists()  # HERE\n", kFile),
            Told::kYes);
}

TEST(MethodCalls, OneConstructionIsOneObjectUnderTwoNames) {
  constexpr std::string_view kPassed = R"(
import queue
class Worker:
  def __init__(self, inbox):
    self.todo = inbox
  def run(self):
    self.todo.get()  # GET
q = queue.Queue()
w = Worker(q)
q.put(1)  # PUT
)";
  const Sources sources{{"/srv/a.py", source(kPassed)}};
  const SourceText& text = sources.at("/srv/a.py");
  const auto get = calls_at(text, sources, line_with(text, "# GET"));
  const auto put = calls_at(text, sources, line_with(text, "# PUT"));
  ASSERT_EQ(get.size(), 1u);
  ASSERT_EQ(put.size(), 1u);
  ASSERT_TRUE(get[0].made);
  EXPECT_EQ(get[0].made, put[0].made);
  EXPECT_EQ(ends(put[0], "Queue", "get"), Told::kYes);
  EXPECT_EQ(ends(put[0], "Queue", "join"), Told::kNo);
}

}  // namespace
}  // namespace ddpdoctor::program
