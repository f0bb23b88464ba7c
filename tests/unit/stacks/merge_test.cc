// SPDX-License-Identifier: Apache-2.0
// Merges stacks that are written here; python_live_test.cc merges real ones.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {
namespace {

NativeFrame native(const std::string& function, RemoteAddress cfa = 0) {
  NativeFrame frame;
  frame.frame.function = function;
  frame.cfa = cfa;
  return frame;
}

PythonFrame python(const std::string& function, bool entry = false) {
  PythonFrame frame;
  frame.frame.language = Language::kPython;
  frame.frame.function = function;
  frame.raw.entry = entry;
  return frame;
}

PythonFrame shim(RemoteAddress address) {
  PythonFrame frame;
  frame.raw.shim = true;
  frame.raw.address = address;
  return frame;
}

std::vector<std::string> names(const std::vector<Frame>& frames) {
  std::vector<std::string> all;
  for (const Frame& frame : frames) {
    all.push_back((frame.language == Language::kPython ? "py " : "") + frame.function);
  }
  return all;
}

using Names = std::vector<std::string>;

constexpr RemoteAddress kStack = 0x7000;

TEST(Merge, EveryLoopIsOneFrameUpTo310) {
  std::string problem;
  const auto merged = merge(
      {native("futex_wait"), native("_PyEval_EvalFrameDefault"), native("function_code_fastcall"),
       native("_PyEval_EvalFrameDefault.cold"), native("main")},
      kStack, {python("inner", true), python("outer", true)}, "3.9", problem);
  EXPECT_EQ(names(merged),
            (Names{"futex_wait", "py inner", "function_code_fastcall", "py outer", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, OneLoopRunsUpToTheEntryFrameIn311) {
  std::string problem;
  const auto merged = merge(
      {native("read"), native("_PyEval_EvalFrameDefault"), native("slot_tp_init"),
       native("_PyEval_EvalFrameDefault.lto_priv.0"), native("main")},
      kStack, {python("a"), python("b", true), python("c"), python("d", true)}, "3.11", problem);
  EXPECT_EQ(names(merged), (Names{"read", "py a", "py b", "slot_tp_init", "py c", "py d", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, TheShimsAddressNamesTheLoopFrom312On) {
  std::string problem;
  // No symbol names the interpreter loops, as in stripped builds.
  const auto merged = merge(
      {native("read", 0x7100), native("", 0x7300), native("gen_iternext", 0x7380),
       native("", 0x7500), native("main", 0x7600)},
      kStack, {python("a"), python("b"), shim(0x7200), python("c"), shim(0x7400)}, "3.13", problem);
  EXPECT_EQ(names(merged), (Names{"read", "py a", "py b", "gen_iternext", "py c", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, AShimInTheInnermostFrameIsFoundFromTheStackPointer) {
  std::string problem;
  const auto merged = merge({native("", 0x7300), native("main", 0x7600)}, kStack,
                            {python("spinning"), shim(0x7200)}, "3.12", problem);
  EXPECT_EQ(names(merged), (Names{"py spinning", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, ASentinelOutsideTheStackWithoutFramesIsNoMisfit) {
  std::string problem;
  const auto merged = merge({native("", 0x7300), native("main", 0x7600)}, kStack,
                            {python("a"), shim(0x7200), shim(0x99999)}, "3.15", problem);
  EXPECT_EQ(names(merged), (Names{"py a", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, AShimOutsideTheUnwoundStackKeepsBothParts) {
  std::string problem;
  const auto merged =
      merge({native("read", 0x7100), native("loop", 0x7300)}, kStack,
            {python("a"), shim(0x7200), python("b"), shim(0x8000)}, "3.12", problem);
  EXPECT_EQ(names(merged), (Names{"py a", "py b", "read", "loop"}));
  EXPECT_NE(problem, "");
}

TEST(Merge, ShimsInTheWrongOrderKeepBothParts) {
  std::string problem;
  const auto merged =
      merge({native("read", 0x7100), native("x", 0x7300), native("y", 0x7500)}, kStack,
            {python("a"), shim(0x7400), python("b"), shim(0x7200)}, "3.12", problem);
  EXPECT_EQ(merged.size(), 5U);
  EXPECT_NE(problem, "");
}

TEST(Merge, CountsThatDisagreeKeepBothParts) {
  std::string problem;
  const auto merged = merge({native("read"), native("_PyEval_EvalFrameDefault")}, kStack,
                            {python("a", true), python("b", true)}, "3.10", problem);
  EXPECT_EQ(names(merged), (Names{"py a", "py b", "read", "_PyEval_EvalFrameDefault"}));
  EXPECT_NE(problem.find("(2 and 1 entries"), std::string::npos) << problem;
}

TEST(Merge, In311TheLoopsOwnVariableTellsItWhereSymbolsDoNot) {
  std::string problem;
  std::vector<PythonFrame> frames = {python("a"), python("b", true), python("c", true)};
  frames[1].raw.loop = 0x7200;
  frames[2].raw.loop = 0x7400;
  const std::vector<NativeFrame> stack = {native("read", 0x7100), native("", 0x7300),
                                          native("call", 0x7380), native("", 0x7500),
                                          native("main", 0x7600)};
  EXPECT_EQ(names(merge(stack, kStack, frames, "3.11", problem)),
            (Names{"read", "py a", "py b", "call", "py c", "main"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, In311NamesHelpWhereTheVariableIsNotOnTheStackWeSaw) {
  std::string problem;
  std::vector<PythonFrame> frames = {python("a", true)};
  frames[0].raw.loop = 0x9000;
  EXPECT_EQ(
      names(merge({native("_PyEval_EvalFrameDefault", 0x7300)}, kStack, frames, "3.11", problem)),
      Names{"py a"});
  EXPECT_EQ(problem, "");
}

TEST(Merge, OtherFunctionsThatBeginLikeTheLoopAreNone) {
  std::string problem;
  merge({native("_PyEval_EvalFrameDefaultish"), native("main")}, kStack, {python("a", true)},
        "3.10", problem);
  EXPECT_NE(problem, "");
}

TEST(Merge, WithoutNativeFramesOnlyPythonIsShown) {
  std::string problem;
  EXPECT_EQ(
      names(merge({}, 0, {python("a"), shim(0x7200), python("b"), shim(0x7400)}, "3.12", problem)),
      (Names{"py a", "py b"}));
  EXPECT_EQ(problem, "");
}

TEST(Merge, WithoutPythonFramesTheNativeStackIsKept) {
  std::string problem;
  EXPECT_EQ(names(merge({native("poll"), native("start_thread")}, kStack, {}, "3.12", problem)),
            (Names{"poll", "start_thread"}));
  EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace ddpdoctor::stacks
