// SPDX-License-Identifier: Apache-2.0
// What a function gets from its callers.
#include "collector/program/questions/passing.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

/// "section/fence@k" for each parameter that the condition at HERE reads.
std::string behind(const std::string& condition, const std::string& source) {
  const Lines lines = lines_of(source);
  std::string out;
  for (const PassedParameter& one : parameters_behind(condition, lines, line_with(lines, "HERE"))) {
    const std::string place = one.place == kByKeywordOnly ? "k" : std::to_string(one.place);
    out += (out.empty() ? "" : " ") + one.callee + "/" + one.name + "@" + place;
  }
  return out;
}

TEST(Parameters, AreThoseThatTheConditionReads) {
  EXPECT_EQ(behind("fence", "def section(name, *, fence=False):\n  if fence:  # HERE\n    f()\n"),
            "section/fence@k");
  EXPECT_EQ(behind("not sync",
                   "class M:\n  def report(self, x: int, sync: bool = True):\n"
                   "    if not sync:  # HERE\n      return\n"),
            "report/sync@1");
  EXPECT_EQ(behind("self.on and n",
                   "class V:\n  def __init__(self, net, on):\n    self.on = on\n"
                   "  def run(self, n):\n    if self.on and n:  # HERE\n"
                   "      f()\n"),
            "V/on@1 run/n@0");
}

TEST(Parameters, AreNoNamesThatTheFunctionSets) {
  EXPECT_EQ(behind("done", "def f(x):\n  done = x > 3\n  if done:  # HERE\n    g()\n"), "");
  EXPECT_EQ(behind("self.on",
                   "class V:\n  def __init__(self, on):\n    self.on = on > 3\n"
                   "    self.on = f(on, 3)\n"
                   "  def run(self):\n    if self.on:  # HERE\n      f()\n"),
            "V/on@0");
}

std::string passed(const PassedParameter& parameter, const std::string& source) {
  std::string out;
  for (const Argument& one : arguments_for(parameter, lines_of(source))) {
    out += (out.empty() ? "" : " | ") + std::to_string(one.line) + ": " + one.text;
  }
  return out;
}

TEST(Parameters, ArePassedByNameOrByPlace) {
  const PassedParameter on = {.callee = "V", .name = "on", .place = 1};
  EXPECT_EQ(passed(on, "v = V(net, rank == 0)\nw = lib.V(net,\n          on=chief)\nx = V(net)\n"),
            "1: rank == 0 | 2: chief");
  EXPECT_EQ(passed(on, "class V:\n  pass\ndef V(a, b): pass\nv = V(*all, 3)\n"), "");
  const PassedParameter fence = {.callee = "section", .name = "fence"};
  EXPECT_EQ(passed(fence, "with section('a', fence=cfg.fence) as s:\n  f(1, 2)\n"), "1: cfg.fence");
}

}  // namespace
}  // namespace ddpdoctor::program
