// SPDX-License-Identifier: Apache-2.0
// Calls, names and values in the text of one statement or expression, for those who read it beside
// a stack: names that are only in strings or comments are none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::program {

/// A call as it is written.
struct Call {
  /// "self.todo.popleft"; of a call on the result of another one the part behind it, with its dot
  /// (".mean" of `f(x).mean()`).
  std::string_view callee;
  std::size_t begin = 0;  // offsets into the text: of the callee's first character
  std::size_t end = 0;    // one past the closing bracket
  std::vector<std::string_view> arguments;  // as written: "x", "key=rank", "*rest"
};

/// Calls in the order of their names; those of a subscript (`hooks[0](x)`) have no name and are
/// left out. Points into `text`.
std::vector<Call> calls_in(std::string_view text);

/// "pg" of `reduce(x, group=pg)`; empty where the call does not have the keyword. Points into the
/// text of the call.
std::string_view keyword_argument(const Call& call, std::string_view keyword);

/// "popleft" of "self.todo.popleft".
std::string_view last_name(std::string_view dotted);

/// Names, numbers and strings of a statement or an expression, as written, attributes too; no
/// keywords. Points into `text`.
std::vector<std::string_view> words_in(std::string_view text);

/// Those of what it yields.
std::vector<std::string_view> words_yielded(std::string_view text);

/// What an expression reads: "todo" of `not self.todo and ready()`, and what a method is asked of,
/// "inbox" of `self.inbox.empty()`. Points into `text`.
std::vector<std::string_view> values_read(std::string_view text);

/// The statement gives the name a new value or changes what it holds: `done = True`, `left -= 1`,
/// `self.todo.popleft()`, `del todo[0]`. Anything with a subscript of it counts.
bool changes(std::string_view statement, std::string_view name);

/// "for k in sorted(sums)" of the first comprehension; empty where there is none, and where
/// `callee` is called by its name, but not for each of its elements: `Plan([f(i) for i in
/// ids]).share()`.
std::string_view comprehension_calling(std::string_view text, std::string_view callee);

/// Variables of the environment that an expression asks for: "X" of `os.environ["X"]`,
/// `os.getenv("X", "0")`, `"X" in os.environ`. Points into `text`.
std::vector<std::string_view> variables_asked(std::string_view text);

}  // namespace ddpdoctor::program
