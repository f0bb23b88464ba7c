// SPDX-License-Identifier: Apache-2.0
// The compound statements around a line of Python. Also works on the few lines that a recording
// contains: unknown lines enclose nothing.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

enum class BlockKind {
  kIf,
  kElif,
  kElse,
  kFor,
  kWhile,
  kTry,
  kExcept,
  kFinally,
  kWith,
  kMatch,
  kCase,
  kFunction,
  kClass
};

/// A compound statement that encloses a line: `if rank == 0:` at 57.
struct Block {
  BlockKind kind = BlockKind::kIf;
  int line = 0;
  int tested = 0;  // for `else`: the line of the test before it; 0: its own line
  int indent = 0;
  std::string text;  // the header as written, joined over continuation lines, without the colon
  // The tested, iterated or entered expression ("rank == 0"); for `else`, that of its `if`.
  std::string condition;
  bool within = false;  // inside one statement: `x = f() if rank == 0 else None`, `ok and f()`
};

/// Blocks around `line`, innermost first, up to and including the function.
std::vector<Block> enclosing(const SourceText& text, int line);

/// The innermost `for` or `while` around `line` in its function.
std::optional<Block> loop_around(const SourceText& text, int line);

/// First and last line of the function that holds `line`.
std::optional<std::pair<int, int>> function_extent(const SourceText& text, int line);

/// The decorators of the function that contains `line`, the nearest to its `def` first; `condition`
/// is the text after the "@".
std::vector<Block> decorators_of(const SourceText& text, int line);

/// The logical line that covers `line`: continuation lines joined, comments removed; empty when the
/// line is unknown.
std::string statement_at(const SourceText& text, int line);

/// A case of a match statement.
struct Case {
  int line = 0;
  std::string pattern;  // "Role.CHIEF", "[x] if x > 0"
  int last_line = 0;    // last line of its suite
};

/// In source order; empty if no match begins at this line.
std::vector<Case> cases_of(const SourceText& text, int line);

}  // namespace ddpdoctor::program
