// SPDX-License-Identifier: Apache-2.0
// Waits that are recognized by their frames; the process is this test itself, which is not blocked.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "collector/sources/processes/python_frames.h"
#include "collector/sources/waits/targets.h"
#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

constexpr pid_t kHolder = 1 << 23;  // no real thread has this number

stacks::Frame native(std::string function, std::string module = "libc.so.6") {
  stacks::Frame frame;
  frame.function = std::move(function);
  frame.module = std::move(module);
  return frame;
}

stacks::Frame python(std::string function, std::string file,
                     std::vector<std::pair<std::string, std::string>> locals = {}) {
  stacks::Frame frame;
  frame.language = stacks::Language::kPython;
  frame.function = std::move(function);
  frame.file = std::move(file);
  frame.locals = std::move(locals);
  return frame;
}

/// This process with one sleeping thread that has these frames.
stacks::ProcessStacks process_with(std::vector<stacks::Frame> frames) {
  stacks::ProcessStacks process;
  process.pid = ::getpid();
  stacks::ThreadStack& thread = process.threads.emplace_back();
  thread.tid = ::getpid();
  thread.state = 'S';
  thread.frames = std::move(frames);
  return process;
}

std::optional<WaitTarget> wait_of(const stacks::ProcessStacks& process,
                                  const std::vector<stacks::ProcessStacks>& others = {}) {
  std::vector<stacks::ProcessStacks> all = others;
  all.push_back(process);
  const auto targets = wait_targets(job_of({process.pid}), all);
  const auto found = targets.find({process.pid, process.threads.front().tid});
  return found == targets.end() ? std::nullopt : std::optional(found->second);
}

TEST(WaitFrames, TakeGilWaitsForTheThreadThatHoldsIt) {
  stacks::ProcessStacks process =
      process_with({native("__futex_abstimed_wait_common"), native("pthread_cond_timedwait"),
                    native("take_gil", "libpython3.11.so.1.0"),
                    native("PyEval_RestoreThread", "libpython3.11.so.1.0")});
  process.python = stacks::PythonRuntime{};
  process.python->gil_holder = kHolder;
  process.threads.emplace_back().tid = kHolder;
  process.threads.back().python_name = "Saver";
  const auto found = wait_of(process);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "gil");
  EXPECT_EQ(found->target, fmt::format("thread:{}", kHolder));
  EXPECT_NE(found->detail.find("Saver"), std::string::npos);
  process.python->gil_moving = true;
  EXPECT_EQ(wait_of(process)->target, "");
}

TEST(WaitFrames, TheCallersOfTakeGilSufficeWhereTheInterpreterIsStripped) {
  const auto found = wait_of(process_with({native(""), native("pthread_cond_timedwait"),
                                           native("PyEval_RestoreThread", "python3.12")}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "gil");
  EXPECT_FALSE(wait_of(process_with({native("clock_nanosleep"), native("time_sleep", "python3.12"),
                                     native("PyEval_RestoreThread", "python3.12")})));
}

TEST(WaitFrames, AMutexOwnerThatIsNoThreadHereIsSaidToBe) {
  stacks::ProcessStacks process =
      process_with({native("__lll_lock_wait"), native("pthread_mutex_lock")});
  process.threads[0].mutex_owner = kHolder;
  const auto found = wait_of(process);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "mutex");
  EXPECT_EQ(found->target, fmt::format("thread:{}", kHolder));
  EXPECT_NE(found->detail.find(fmt::format("owner {} is not a thread of this process", kHolder)),
            std::string::npos);
  stacks::ProcessStacks parent;
  parent.pid = ::getppid();
  parent.threads.emplace_back().tid = kHolder;
  EXPECT_NE(wait_of(process, {parent})->detail.find("thread of its parent"), std::string::npos);
}

TEST(WaitFrames, AStoreWaitNamesTheKey) {
  const auto found = wait_of(
      process_with({native("recv"), native("c10d::TCPStore::doWait", "libtorch_cpu.so"),
                    native("c10d::TCPStore::get", "libtorch_cpu.so"),
                    python("_store_based_barrier", "/x/torch/distributed/distributed_c10d.py",
                           {{"rank", "0"},
                            {"store_key", "'store_based_barrier_key:1'"},
                            {"last_worker_key", "'store_based_barrier_key:1:last_worker'"}})}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "store-key");
  EXPECT_EQ(found->target, "store_based_barrier_key:1:last_worker");
  EXPECT_EQ(wait_of(process_with({native("c10d::TCPStore::wait", "libtorch_cpu.so"),
                                  python("main", "/x/train.py")}))
                ->target,
            "");
}

TEST(WaitFrames, AnImportLockNamesTheModule) {
  const std::string bootstrap = "<frozen importlib._bootstrap>";
  const auto found =
      wait_of(process_with({native("sem_wait"), python("_ModuleLock.acquire", bootstrap),
                            python("_ModuleLockManager.__enter__", bootstrap),
                            python("_find_and_load", bootstrap, {{"name", "'numpy.linalg'"}}),
                            python("work", "/x/train.py")}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "import-lock");
  EXPECT_EQ(found->detail, "import of numpy.linalg");
}

TEST(WaitFrames, ABatonNamesItsFile) {
  const auto found = wait_of(process_with(
      {native("clock_nanosleep"),
       python("FileBaton.wait", "/x/torch/utils/file_baton.py",
              {{"self",
                "<FileBaton at 0x7f98 "
                "lock_file_path='/root/.cache/torch_extensions/py311_cpu/ops/lock'>"}})}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "lock-file");
  EXPECT_EQ(found->target, "file:/root/.cache/torch_extensions/py311_cpu/ops/lock");
  const auto library = wait_of(process_with({python("BaseFileLock.acquire", "/x/filelock/_api.py",
                                                    {{"lock_filename", "'/data/set.lock'"}})}));
  ASSERT_TRUE(library);
  EXPECT_EQ(library->target, "file:/data/set.lock");
  EXPECT_EQ(wait_of(process_with({python("FileBaton.wait", "/x/torch/utils/file_baton.py",
                                         {{"self", "<FileBaton object>"}})}))
                ->target,
            "");
}

TEST(WaitFrames, ALockFileIsPolledForEverUnlessTheLibraryGivesUp) {
  const auto polled = [](const char* timeout, stacks::Frame caller) {
    return wait_of(
        process_with({native("clock_nanosleep"),
                      python("BaseFileLock.acquire", "/x/filelock/_api.py",
                             {{"timeout", timeout},
                              {"lock_filename", "'cache/set.lock'"},
                              {"canonical_path", "'/data/cache/set.lock'"}}),
                      python("BaseFileLock.__enter__", "/x/filelock/_api.py"), std::move(caller)}));
  };
  const auto for_ever = polled("-1.0", python("load", "/x/train.py"));
  ASSERT_TRUE(for_ever);
  EXPECT_EQ(for_ever->target, "file:/data/cache/set.lock");
  EXPECT_FALSE(for_ever->limit);
  EXPECT_EQ(polled("10", python("load", "/x/train.py"))->limit, 10.0);
  EXPECT_FALSE(polled("10", python("WeakFileLock", "/x/huggingface_hub/utils/_fixes.py"))->limit);
}

TEST(WaitFrames, AJoinOfAPythonThreadNamesItByItsName) {
  stacks::ProcessStacks process = process_with(
      {native("sem_wait"), python("Thread._wait_for_tstate_lock", "/lib/python3.11/threading.py"),
       python("Thread.join", "/lib/python3.11/threading.py",
              {{"self", "<Thread at 0x7f98 _name='Saver'>"}}),
       python("main", "/x/train.py")});
  process.threads.emplace_back().tid = kHolder;
  process.threads.back().python_name = "Saver";
  const auto found = wait_of(process);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "thread");
  EXPECT_EQ(found->target, fmt::format("thread:{}", kHolder));
}

TEST(WaitFrames, ASemaphoreOfMultiprocessingHasNoOwner) {
  stacks::ProcessStacks process = process_with(
      {native("sem_wait"), native("_multiprocessing_SemLock_acquire", "_multiprocessing.so")});
  process.threads[0].syscall = stacks::Syscall{.number = SYS_futex, .arguments = {}};
  const auto found = wait_of(process);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "semaphore");
  EXPECT_EQ(found->target, "");
}

TEST(WaitFrames, WhoRunsOrWasStoppedWaitsForNothing) {
  for (const char state : {'R', 'T'}) {
    stacks::ProcessStacks process =
        process_with({native("pthread_cond_timedwait"), native("take_gil", "libpython3.11.so")});
    process.threads[0].state = state;
    EXPECT_FALSE(wait_of(process)) << state;
  }
}

TEST(WaitFrames, AProcessThatIsNotInTheJobIsLeftOut) {
  stacks::ProcessStacks process = process_with({native("take_gil", "libpython3.11.so")});
  process.pid = kHolder;
  EXPECT_TRUE(wait_targets(job_of({::getpid()}), {process}).empty());
}

TEST(AttributeText, OnlyAQuotedValueBehindTheNameCounts) {
  EXPECT_EQ(attribute_text("<Thread at 0x1 _name='a b'>", "_name"), "a b");
  EXPECT_FALSE(attribute_text("<Thread at 0x1 _name='a b'>", "name"));
  EXPECT_FALSE(attribute_text("<Popen at 0x1 pid=7>", "pid"));
  EXPECT_FALSE(attribute_text("<Thread at 0x1 _name='cut", "_name"));
  EXPECT_FALSE(attribute_text("<x _name=", "_name"));
}

TEST(LocalText, QuotesAreTakenOffAndNoneIsNothing) {
  const stacks::Frame frame =
      python("f", "x.py", {{"a", "'text'"}, {"b", "None"}, {"c", "17"}, {"d", "'"}, {"e", ""}});
  EXPECT_EQ(local_text(frame, "a"), "text");
  EXPECT_FALSE(local_text(frame, "b"));
  EXPECT_EQ(local_text(frame, "c"), "17");
  EXPECT_EQ(local_text(frame, "d"), "'");
  EXPECT_FALSE(local_text(frame, "e"));
  EXPECT_FALSE(local_text(frame, "z"));
}

}  // namespace
}  // namespace ddpdoctor::sources
