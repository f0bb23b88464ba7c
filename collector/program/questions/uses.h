// SPDX-License-Identifier: Apache-2.0
// Where a file uses a name as a value, wraps a function, sets up its log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/origin/origin.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

struct Use {
  int line = 0;
  // Of the innermost `a if condition else b` that yields it, or that is among a call's arguments;
  // empty where there is none.
  std::string condition;
};

/// Lines that take `name` for a value: `steps.append(Clip)`, `self.hook = collect`. What only says
/// what it is counts for none: its definition, imports, base classes, annotations, decorators,
/// isinstance() and super().
std::vector<Use> uses_of(const SourceText& text, std::string_view name);

/// Calls that say which records Python's logging lets through, and to whom:
/// `log.setLevel(level)`.
std::vector<Use> logging_setups(const SourceText& text);

/// The statement that covers `line` writes to a log: `log.info(…)`.
bool writes_to_log(const SourceText& text, int line);

/// A call that is given the function `name` without calling it: `once(self.run)`.
struct Wrapping {
  int line = 0;
  std::string callee;     // "accelerator.once"
  std::string statement;  // on one line
};
std::vector<Wrapping> wrappings_of(const SourceText& text, std::string_view name);

/// The statement that covers `line` makes text of its arguments at once: `f"{x}"`, `"%s" % x`,
/// `"{}".format(x)`, `str(x)`.
bool makes_text_at_once(const SourceText& text, int line);

/// The calls of the statement that covers `line`, by what the imports say they are:
/// "torch.nn.parallel.DistributedDataParallel" of `Wrapped(net)`; what no import explains as it is
/// written: "self.net".
std::vector<std::string> callees_at(const SourceText& text, int line, const Sources& sources);

/// What `and`, `or` and `not` of a condition join, as written; the condition itself where they join
/// nothing.
std::vector<std::string> operands_of(std::string_view condition);

/// The condition asks whether anything has come to an attribute that the file adds to: `not
/// self.boxes`, `len(self.boxes) == 0`, where a line calls `self.boxes.append(x)`.
bool asks_for_any(const SourceText& text, std::string_view condition);

}  // namespace ddpdoctor::program
