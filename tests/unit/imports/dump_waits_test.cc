// SPDX-License-Identifier: Apache-2.0
// What a user line shows about a wait that is not in the dump.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

/// A process dumped by another tool; its innermost frame is on this line.
std::string wait_on(const std::string& line, char state = 'S', const std::string& function = "f",
                    const std::string& file = "/srv/train.py") {
  model::Thread thread;
  thread.tid = 100;
  thread.state = state;
  thread.capture = std::string(model::kDumpedFrom) + "py-spy";
  model::Frame frame;
  frame.language = model::Language::kPython;
  frame.function = function;
  frame.file = file;
  frame.line = 7;
  thread.frames = {frame};
  model::Process process;
  process.pid = 100;
  process.threads = {thread};
  model::JobModel job;
  job.observations = {{.time = 0, .processes = {process}}};
  job.sources[file][7] = line;
  infer_waits(job);
  const auto& waits = job.observations[0].processes[0].threads[0].waits_on;
  return waits ? waits->kind + (waits->detail.empty() ? "" : " " + waits->detail) : "";
}

TEST(DumpWaits, OfALockNameIt) {
  EXPECT_EQ(wait_on("    with queue_lock:  # both"), "mutex `queue_lock`");
  EXPECT_EQ(wait_on("with self.state.lock:"), "mutex `self.state.lock`");
  EXPECT_EQ(wait_on("if not write_lock.acquire():"), "mutex `write_lock`");
  EXPECT_EQ(wait_on("with torch.no_grad():"), "");
  EXPECT_EQ(wait_on("with unlocked(path) as f:"), "");
  EXPECT_EQ(wait_on("gate.acquire()"), "");
}

TEST(DumpWaits, OfAStoreAndOfInput) {
  EXPECT_EQ(wait_on("    return store.get(\"plan/epoch-0\")"), "store-key");
  EXPECT_EQ(wait_on("self._store.wait([key], timeout)"), "store-key");
  EXPECT_EQ(wait_on("value = settings.get(\"lr\")"), "");
  EXPECT_EQ(wait_on("answer = input()"), "input");
  EXPECT_EQ(wait_on("answer = self.input(x)"), "");
}

TEST(DumpWaits, InAReadOfTheStandardLibraryAreWaitsForASocket) {
  EXPECT_EQ(wait_on("", 'S', "read", "./lib/python3.8/ssl.py"), "socket");
  EXPECT_EQ(wait_on("", 'R', "SSLSocket.recv_into", "/usr/lib/python3.11/ssl.py"), "")
      << "data arrives";
  EXPECT_EQ(wait_on("", 'S', "SocketIO.readinto", "/usr/lib/python3.12/socket.py"), "socket");
  EXPECT_EQ(wait_on("", 'S', "create_connection", "/usr/lib/python3.12/socket.py"), "socket");
  EXPECT_EQ(wait_on("", 'S', "accept", "/usr/lib/python3.12/socket.py"), "");
  EXPECT_EQ(wait_on("", 'S', "read", "/srv/app/ssl.py"), "");
}

TEST(DumpWaits, OfFilesAndSocketsSayTheExpression) {
  EXPECT_EQ(wait_on("with open(path, 'rb') as f:"), "file `path`");
  EXPECT_EQ(wait_on("data = f.read()"), "file `f`");
  EXPECT_EQ(wait_on("return connection.recv(100)"), "socket `connection`");
  EXPECT_EQ(wait_on("reopen(path)"), "");
  EXPECT_EQ(wait_on("stream.write(x)", 'S', "StreamHandler.emit",
                    "/usr/lib/python3.11/logging/__init__.py"),
            "file `handler.stream`");
}

TEST(DumpWaits, AreNoneWhereTheThreadRunsOrTheLineIsALibrarys) {
  EXPECT_EQ(wait_on("with queue_lock:", 'R'), "");
  EXPECT_EQ(wait_on("with self.lock:", 'S', "get", "/usr/lib/python3.11/queue.py"), "");
  EXPECT_EQ(wait_on(""), "");
  EXPECT_EQ(wait_on("("), "");
  EXPECT_EQ(wait_on("open("), "file");
}

constexpr std::string_view kJoins =
    "Thread 71 (idle): \"MainThread\"\n    _wait_for_tstate_lock (threading.py:1169)\n    join "
    "(threading.py:1149)\n";

/// The thread whose end the main thread waits for; `caller` called join().
std::string joined(const std::string& caller, const std::string& threads) {
  model::JobModel job = read_dump(fmt::format("{}    {}\n{}", kJoins, caller, threads));
  infer_waits(job);
  const auto& waits = only(job).threads.at(0).waits_on;
  return waits ? waits->target : "";
}

const std::string kIdleOfPool =
    "Thread 72 (idle): \"io_0\"\n    _worker (concurrent/futures/thread.py:81)\n    run "
    "(threading.py:982)\n    _bootstrap (threading.py:1002)\n";
const std::string kBusyOfPool =
    "Thread 73 (active): \"io_1\"\n    put (store.py:40)\n    run "
    "(concurrent/futures/thread.py:58)\n"
    "    _worker (concurrent/futures/thread.py:83)\n    run (threading.py:982)\n";

TEST(DumpWaits, AnExecutorThatEndsWaitsForItsThreadWithATask) {
  const std::string pool = kIdleOfPool + kBusyOfPool;
  EXPECT_EQ(joined("shutdown (concurrent/futures/thread.py:239)\n    close (app.py:8)", pool),
            "thread:73");
  EXPECT_EQ(joined("_python_exit (concurrent/futures/thread.py:31)", pool), "thread:73");
  EXPECT_EQ(joined("_python_exit (concurrent/futures/thread.py:31)", kIdleOfPool), "");
  EXPECT_EQ(joined("close (app.py:8)", pool), "") << "it may join any thread";
}

TEST(DumpWaits, TheNameShowsThePoolWhereTheOuterFramesWereNotCopied) {
  const std::string shutdown = "shutdown (concurrent/futures/thread.py:239)";
  EXPECT_EQ(joined(shutdown, "Thread 73 (active): \"io_1\"\n    put (store.py:40)\n"), "thread:73");
  EXPECT_EQ(joined(shutdown, "Thread 73 (active): \"reader\"\n    put (store.py:40)\n"), "");
  EXPECT_EQ(joined(shutdown,
                   "Thread 73 (active): \"io_1\"\n    put (store.py:40)\n    run "
                   "(threading.py:982)\n"),
            "")
      << "the program started it";
}

}  // namespace
}  // namespace ddpdoctor::imports
