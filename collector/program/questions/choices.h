// SPDX-License-Identifier: Apache-2.0
// The choices that a function made on its way to a line, or may have made on an earlier pass, and
// the calls that only one outcome of each makes.
#pragma once

#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The decision repeats a loop or leaves it.
bool loops(DecisionKind kind);

/// One choice; calls that both outcomes make are omitted.
struct Choice {
  Decision decision;             // for kExcept: whether an exception is caught there
  std::vector<Node> if_taken{};  // calls if the test is true, per item, or once caught
  std::vector<Node> if_not{};    // calls otherwise; those that a `continue` or `return` skips
  bool once = false;             // passed at most once per call of the function
  bool led_here = false;         // until it is made again, only one outcome leads to the line
  bool returns = true;           // each outcome leads to the line sooner or later
  int distance = 0;              // steps back from the line; 0 if no line was given
};

/// A call that was passed, or may have been.
struct CallBehind {
  Node call;
  int distance = 0;
  bool here = false;  // it is on the line itself
};

/// The choices and calls before a line of a scope.
struct Behind {
  std::vector<Choice> choices;
  std::vector<CallBehind> calls;
  bool in_loop = false;  // the line is in a loop
};

/// `line` 0 means the whole scope. Paths that end in an uncaught `raise` do not count.
Behind behind(const SourceText& text, const Scope& scope, int line);

}  // namespace ddpdoctor::program
