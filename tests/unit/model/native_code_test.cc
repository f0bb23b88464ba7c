// SPDX-License-Identifier: Apache-2.0
#include "collector/model/native_code.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

Frame native(const std::string& function, const std::string& module) {
  Frame frame;
  frame.language = Language::kNative;
  frame.function = function;
  frame.module = module;
  return frame;
}

TEST(NativeCode, KnowsWhoReleasesTheGil) {
  EXPECT_TRUE(releases_gil("pybind11::gil_scoped_release::gil_scoped_release(bool)"));
  EXPECT_TRUE(releases_gil("at::_ops::add_Tensor::call"));
  EXPECT_FALSE(releases_gil("pybind11::gil_scoped_acquire::gil_scoped_acquire()"));
  EXPECT_TRUE(blocks_without_gil(native("time_sleep", "libpython3.12.so.1.0")));
  EXPECT_TRUE(blocks_without_gil(native("sock_recv_guts", "")));
  EXPECT_FALSE(blocks_without_gil(native("sock_recv", "libmpi.so.40")));
}

TEST(NativeCode, OnlyLibcsFunctionsSleepInLibc) {
  EXPECT_TRUE(sleeps_in_libc(native("__poll", "libc.so.6")));
  EXPECT_TRUE(sleeps_in_libc(native("read", "libc.so.6")));
  EXPECT_FALSE(sleeps_in_libc(native("__sched_yield", "libc.so.6")));
  EXPECT_FALSE(sleeps_in_libc(native("poll_cq", "libibverbs.so.1")));
}

}  // namespace
}  // namespace ddpdoctor::model
