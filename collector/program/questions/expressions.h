// SPDX-License-Identifier: Apache-2.0
// Calls, names and values in the text of one statement or expression, for reading a source line
// next to a stack. Names inside strings and comments do not count.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::program {

/// A call as it is written.
struct Call {
  /// "self.todo.popleft"; for a call on the result of another call, the part after it with its dot
  /// (".mean" of `f(x).mean()`).
  std::string_view callee;
  std::size_t begin = 0;                    // offset into the text of the callee's first character
  std::size_t end = 0;                      // offset one past the closing parenthesis
  std::vector<std::string_view> arguments;  // as written: "x", "key=rank", "*rest"
};

/// Calls in the order of their names; calls of a subscript (`hooks[0](x)`) have no name and are
/// omitted. Points into `text`.
std::vector<Call> calls_in(std::string_view text);

/// "pg" of `reduce(x, group=pg)`; empty if the call has no such keyword. Points into the text of
/// the call.
std::string_view keyword_argument(const Call& call, std::string_view keyword);

/// "popleft" of "self.todo.popleft".
std::string_view last_name(std::string_view dotted);

/// Names (with attributes), numbers and strings of a statement or expression, as written; no
/// keywords. Points into `text`.
std::vector<std::string_view> words_in(std::string_view text);

/// The words of the expression that it yields.
std::vector<std::string_view> words_yielded(std::string_view text);

/// The values that an expression reads: "todo" of `not self.todo and ready()`, and the object of a
/// method call, "inbox" of `self.inbox.empty()`. Points into `text`.
std::vector<std::string_view> values_read(std::string_view text);

/// The statement assigns the name or changes its object: `done = True`, `left -= 1`,
/// `self.todo.popleft()`, `del todo[0]`. Any change of a subscript counts.
bool changes(std::string_view statement, std::string_view name);

/// "for k in sorted(sums)" of the first comprehension. Empty if there is none, or if `callee` is
/// called, but not once per element: `Plan([f(i) for i in ids]).share()`.
std::string_view comprehension_calling(std::string_view text, std::string_view callee);

/// Environment variables that an expression reads: "X" of `os.environ["X"]`, `os.getenv("X", "0")`,
/// `"X" in os.environ`. Points into `text`.
std::vector<std::string_view> variables_asked(std::string_view text);

}  // namespace ddpdoctor::program
