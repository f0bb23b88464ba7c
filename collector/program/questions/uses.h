// SPDX-License-Identifier: Apache-2.0
// Where a file uses a name as a value, wraps a function, or configures logging.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/origin/origin.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

struct Use {
  int line = 0;
  // the condition of the innermost `a if condition else b` that yields it or whose value is an
  // argument of the call; empty if there is none
  std::string condition;
};

/// Lines that use `name` as a value: `steps.append(Clip)`, `self.hook = collect`. Declarations do
/// not count: its definition, imports, base classes, annotations, decorators, isinstance() and
/// super().
std::vector<Use> uses_of(const SourceText& text, std::string_view name);

/// Calls that set which records Python's logging passes, and where they go: `log.setLevel(level)`.
std::vector<Use> logging_setups(const SourceText& text);

/// The statement that covers `line` writes to a log: `log.info(…)`.
bool writes_to_log(const SourceText& text, int line);

/// A call that receives the function `name` without calling it: `once(self.run)`.
struct Wrapping {
  int line = 0;
  std::string callee;     // "accelerator.once"
  std::string statement;  // on one line
};
std::vector<Wrapping> wrappings_of(const SourceText& text, std::string_view name);

/// The statement that covers `line` converts its arguments to text immediately: `f"{x}"`, `"%s" %
/// x`, `"{}".format(x)`, `str(x)`.
bool makes_text_at_once(const SourceText& text, int line);

/// The calls of the statement that covers `line`, resolved through imports:
/// "torch.nn.parallel.DistributedDataParallel" for `Wrapped(net)`; as written if no import explains
/// them: "self.net".
std::vector<std::string> callees_at(const SourceText& text, int line, const Sources& sources);

/// The operands of `and`, `or` and `not` in a condition, as written; the condition itself if it has
/// none of these.
std::vector<std::string> operands_of(std::string_view condition);

/// A true operand makes its part of the condition false: `stop` of `step < n and not stop`.
bool is_negated(std::string_view condition, std::string_view operand);

/// The condition tests whether an attribute that the file appends to has any items: `not
/// self.boxes`, `len(self.boxes) == 0`, where a line calls `self.boxes.append(x)`.
bool asks_for_any(const SourceText& text, std::string_view condition);

}  // namespace ddpdoctor::program
