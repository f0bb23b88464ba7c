// SPDX-License-Identifier: Apache-2.0
// The choices that a function has made on its way to a line, or may have made on an earlier way
// through it, and the calls that only one of their ways makes.
#pragma once

#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// One choice; what both of its ways lead to is no part of it.
struct Choice {
  Decision decision;             // kExcept: whether something is caught there
  std::vector<Node> if_taken{};  // calls if the test holds, for each item, once it is caught
  std::vector<Node> if_not{};    // calls otherwise: what is left out by a `continue`, a `return`
  bool once = false;             // passed once at most in a run of the function
  bool led_here = false;         // only one of its ways leads to the line, until it is made again
  bool returns = true;           // each of them does, sooner or later
  int distance = 0;              // steps back from the line; 0 where no line was asked for
};

/// A call that was passed, or may have been.
struct CallBehind {
  Node call;
  int distance = 0;
  bool here = false;  // in the line itself
};

/// What lies behind a line of a scope.
struct Behind {
  std::vector<Choice> choices;
  std::vector<CallBehind> calls;
  bool in_loop = false;  // the line is passed again and again
};

/// `line` 0: all of the scope. Ways that end in an uncaught `raise` are none.
Behind behind(const SourceText& text, const Scope& scope, int line);

}  // namespace ddpdoctor::program
