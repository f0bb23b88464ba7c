// SPDX-License-Identifier: Apache-2.0
#include "collector/model/python_waits.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

PythonWait wait_in(const std::string& file, const std::string& function) {
  Frame frame;
  frame.language = Language::kPython;
  frame.file = file;
  frame.function = function;
  return python_wait(frame);
}

TEST(PythonWait, IsKnownByModuleAndFunction) {
  EXPECT_EQ(wait_in("/usr/lib/python3.12/threading.py", "Condition.wait"), PythonWait::kSignal);
  EXPECT_EQ(wait_in("threading.py", "RLock.acquire"), PythonWait::kLock);
  EXPECT_EQ(wait_in("/usr/lib/python3.6/threading.py", "__enter__"), PythonWait::kLock);
  EXPECT_EQ(wait_in("/usr/lib/python3.12/queue.py", "get"), PythonWait::kQueue);
  EXPECT_EQ(wait_in("/usr/lib/python3.12/concurrent/futures/_base.py", "result"),
            PythonWait::kFuture);
  EXPECT_EQ(wait_in("/usr/lib/python3.12/multiprocessing/synchronize.py", "acquire"),
            PythonWait::kProcesses);
  EXPECT_EQ(wait_in("/usr/lib/python3.12/selectors.py", "select"), PythonWait::kEvents);
}

TEST(PythonWait, IsNoneInOtherFilesAndInNativeCode) {
  EXPECT_EQ(wait_in("/srv/my_threading.py", "wait"), PythonWait::kNone);
  EXPECT_EQ(wait_in("/srv/train.py", "wait"), PythonWait::kNone);
  Frame native;
  native.language = Language::kNative;
  native.file = "/src/threading.py";
  EXPECT_EQ(python_wait(native), PythonWait::kNone);
}

TEST(PythonWait, OfALockIsNotOnPurpose) {
  EXPECT_FALSE(is_on_purpose(PythonWait::kLock));
  EXPECT_FALSE(is_on_purpose(PythonWait::kNone));
  EXPECT_TRUE(is_on_purpose(PythonWait::kFuture));
  EXPECT_TRUE(is_of_own_threads(PythonWait::kLock));
  EXPECT_FALSE(is_of_own_threads(PythonWait::kFuture));
  EXPECT_FALSE(is_of_threading(PythonWait::kQueue));
}

}  // namespace
}  // namespace ddpdoctor::model
