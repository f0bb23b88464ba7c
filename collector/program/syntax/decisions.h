// SPDX-License-Identifier: Apache-2.0
// The decisions of a scope: everything that branches on a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

enum class DecisionKind : std::uint8_t {
  kIf,
  kElif,
  kWhile,
  kFor,      // whether there is another item; `condition` is the iterable
  kTernary,  // a if condition else b
  kAnd,      // condition and rest
  kOr,       // condition or rest
  kAssert,
  kCase,     // `condition` is the pattern, `subject` the matched value
  kGuard,    // case … if condition
  kExcept,   // whether this exception was raised; `condition` is what is caught
  kFilter,   // [… for … if condition]
  kIterate,  // [… for … in condition]
  kRaise,    // whether the statement raises; used only in flow/
};

/// One decision. `condition` is a view of the tested expression; `text` is the same on one line.
struct Decision {
  DecisionKind kind = DecisionKind::kIf;
  Node condition;  // null: a bare `except:`
  Node subject{};  // for a case
  Node owner;      // the statement, clause or expression that decides
  int line = 0;    // line of the owner
  std::string text;
  std::size_t statement = kNone;  // index of the statement that contains it

  /// The condition is a boolean, not an iterable, pattern or exception.
  [[nodiscard]] bool is_test() const {
    return kind != DecisionKind::kFor && kind != DecisionKind::kIterate &&
           kind != DecisionKind::kCase && kind != DecisionKind::kExcept &&
           kind != DecisionKind::kRaise;
  }
};

/// The decisions of a scope itself, without the functions, classes and lambdas inside it; in source
/// order.
std::vector<Decision> decisions_of(const SourceIndex& index, const Scope& scope);

/// The decisions inside one expression or simple statement, outermost first.
std::vector<Decision> decisions_in(const SourceIndex& index, Node expression);

/// By its name, a frame is that of a comprehension. Before 3.12, every one has its own frame with
/// its iterators on the stack. Since then, they lie above values whose end the frame does not
/// record during a call.
bool is_frame_of_comprehension(std::string_view function);

/// The `for` clauses of the only comprehension on a line; empty if there are several or none.
std::vector<Decision> comprehension_at(const SourceIndex& index, int line);

}  // namespace ddpdoctor::program
