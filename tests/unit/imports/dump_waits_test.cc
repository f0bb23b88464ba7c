// SPDX-License-Identifier: Apache-2.0
// What a user line shows about a wait that is not in the dump.
#include <gtest/gtest.h>

#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"

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

}  // namespace
}  // namespace ddpdoctor::imports
