// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <gtest/gtest.h>

#include "collector/stacks/native/demangle.h"
#include "collector/stacks/target/proc_file.h"
#include "collector/stacks/target/proc_tasks.h"

namespace ddpdoctor::stacks {
namespace {

TEST(BlockedState, KeepsTheSystemCallAndTheRegistersItShows) {
  const auto state =
      parse_blocked("202 0x7f01 0x189 0x0 0x7f02 0x0 0xffffffff 0x7ffc10 0x7f0010\n");
  ASSERT_TRUE(state.has_value());
  ASSERT_TRUE(state->syscall.has_value());
  EXPECT_EQ(state->syscall->number, 202);
  EXPECT_EQ(state->syscall->arguments[1], 0x189U);
  EXPECT_EQ(state->registers[kStackPointer], 0x7ffc10U);
  EXPECT_EQ(state->registers[kProgramCounter], 0x7f0010U);
  EXPECT_FALSE(state->registers.known(kFramePointer));
}

TEST(BlockedState, TellsRunningFromASleepOutsideASystemCall) {
  EXPECT_TRUE(parse_blocked("running\n")->running);
  const auto fault = parse_blocked("-1 0x7ffc10 0x7f0010\n");
  ASSERT_TRUE(fault.has_value());
  EXPECT_FALSE(fault->syscall.has_value());
  EXPECT_EQ(fault->registers[kProgramCounter], 0x7f0010U);
  for (const std::string_view broken : {"", "x", "202 0x1", "-1 0x7ffc10", "202 0 0 0 0 0 0 0x1"}) {
    EXPECT_FALSE(parse_blocked(broken).has_value()) << broken;
  }
}

TEST(Stat, TakesTheNameUpToTheLastParenthesis) {
  const auto name = parse_stat("12 (a) b (c) S 1 2 3");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->name, "a) b (c");
  EXPECT_EQ(name->state, 'S');
  EXPECT_FALSE(parse_stat("12 (a").has_value());
  EXPECT_FALSE(parse_stat("12 (a)").has_value());
}

TEST(StatusField, IsTheValueOfExactlyThatKey) {
  constexpr std::string_view kStatus = "Name:\tx\nPid:\t5\nNSpid:\t5\t1\n";
  EXPECT_EQ(status_field(kStatus, "Pid"), "5");
  EXPECT_EQ(status_field(kStatus, "NSpid"), "5\t1");
  EXPECT_EQ(status_field(kStatus, "id"), std::nullopt);
}

TEST(ProcTasks, NameThisThread) {
  const auto tasks = ProcTasks::open(::getpid());
  ASSERT_TRUE(tasks.has_value());
  EXPECT_EQ(tasks->tids().front(), ::getpid());
  EXPECT_TRUE(tasks->run_count(::getpid()).has_value());
  EXPECT_EQ(tasks->inner_tid(::getpid()), ::getpid());
  EXPECT_FALSE(ProcTasks::open(0x7ffffff0).has_value());
}

TEST(ReadableFunction, LeavesTheNameAndDropsTheNoise) {
  EXPECT_EQ(folded_name("c10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >)"),
            "c10d::Work::wait");
  EXPECT_EQ(
      folded_name(
          "void at::native::(anonymous namespace)::loop<float, int>(char**, long const*) const"),
      "at::native::(anonymous)::loop");
  EXPECT_EQ(folded_name("foo(int)::{lambda(float)#2}::operator()(float) const"),
            "foo::{lambda}::operator()");
  EXPECT_EQ(folded_name("bool operator< <int>(A<int> const&, A<int> const&)"), "operator<");
  EXPECT_EQ(folded_name("std::basic_ostream<char>& std::operator<< <std::char_traits<char> "
                        ">(std::ostream&, char const*)"),
            "std::operator<<");
  EXPECT_EQ(folded_name("A::operator bool() const"), "A::operator bool");
  EXPECT_EQ(folded_name("A::operator->()"), "A::operator->");
  EXPECT_EQ(folded_name("std::__cxx11::basic_string<char>::append(char const*)"),
            "std::basic_string::append");
  EXPECT_EQ(folded_name("c10d::f[abi:cxx11](int)"), "c10d::f");
  EXPECT_EQ(folded_name("decltype (f(0)) g<int>(int)"), "g");
}

TEST(ReadableFunction, NamesWhatAPythonBindingBinds) {
  EXPECT_EQ(folded_name("pybind11::cpp_function::initialize<pybind11::cpp_function::initialize<"
                        "bool, c10d::Work>(bool (c10d::Work::*)"
                        "(long))::{lambda(c10d::Work*, long)#1}, bool>(bool (*)(c10d::Work*, "
                        "long))::{lambda(pybind11::detail::"
                        "function_call&)#3}::_FUN(pybind11::detail::function_call&)"),
            "pybind11 binding of c10d::Work");
  EXPECT_EQ(
      folded_name(
          "pybind11::cpp_function::initialize<torch::initModule(_object*)::{lambda(int)#2}, "
          "int>(int (*)(int))::"
          "{lambda(pybind11::detail::function_call&)#1}::_FUN(pybind11::detail::function_call&)"),
      "pybind11 binding of torch::initModule");
}

TEST(ReadableFunction, JoinsTheCompilersPieces) {
  EXPECT_EQ(readable_function("_PyEval_EvalFrameDefault.cold"), "_PyEval_EvalFrameDefault");
  EXPECT_EQ(readable_function("_ZN4c10d4Work4waitEv.part.0"), "c10d::Work::wait");
  EXPECT_EQ(readable_function("poll"), "poll");
  EXPECT_EQ(readable_function(""), "");
  EXPECT_LE(readable_function(std::string(5000, 'x')).size(), 210U);
  EXPECT_EQ(readable_function("_Z\x01"), "_Z\\x01");
}

TEST(ReadableFunction, EndsOnAnyBrackets) {
  for (const std::string_view odd :
       {"(", ")", "<", ">", "((((", "a<b", "operator", "operator<", "{lambda(", "a::{lambda(int)#1",
        "(anonymous namespace)", "::", " ", "f() ", "f() const",
        "f()::", "pybind11::cpp_function::initialize<"}) {
    EXPECT_LE(folded_name(odd).size(), odd.size() + 10) << odd;
  }
}

}  // namespace
}  // namespace ddpdoctor::stacks
