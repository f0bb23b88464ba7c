// SPDX-License-Identifier: Apache-2.0
// Where control chooses: everything in one scope that goes one way or another by a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

enum class DecisionKind : std::uint8_t {
  kIf,
  kElif,
  kWhile,
  kFor,      // whether there is another item; `condition` is what is iterated
  kTernary,  // a if condition else b
  kAnd,      // condition and rest
  kOr,       // condition or rest
  kAssert,
  kCase,     // `condition` is the pattern, `subject` what is matched
  kGuard,    // case … if condition
  kExcept,   // whether an exception of this kind came; `condition` is what is caught
  kFilter,   // [… for … if condition]
  kIterate,  // [… for … in condition]
  kRaise,    // whether the statement raises; only in flow
};

/// One decision. `condition` is a view of what is tested; `text` the same on one line.
struct Decision {
  DecisionKind kind = DecisionKind::kIf;
  Node condition;  // absent: a bare `except:`
  Node subject{};  // of a case
  Node owner;      // the statement, clause or expression that is decided
  int line = 0;    // of the owner
  std::string text;
  std::size_t statement = kNone;  // index of the statement that holds it

  /// The condition is a value that is true or false, not an iterable, pattern or exception.
  [[nodiscard]] bool is_test() const {
    return kind != DecisionKind::kFor && kind != DecisionKind::kIterate &&
           kind != DecisionKind::kCase && kind != DecisionKind::kExcept &&
           kind != DecisionKind::kRaise;
  }
};

/// Those of a scope itself, without the functions, classes and lambdas inside it; in the order of
/// the source.
std::vector<Decision> decisions_of(const SourceIndex& index, const Scope& scope);

/// Those inside one expression or simple statement, outermost first.
std::vector<Decision> decisions_in(const SourceIndex& index, Node expression);

}  // namespace ddpdoctor::program
