// SPDX-License-Identifier: Apache-2.0
// Where the value of a condition comes from: a backward slice over assignments, parameters,
// returns, attributes and properties of all known files, to a row of the library tables. It
// identifies objects by their definition, never by the user's name for them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// One line of the slice.
struct OriginStep {
  std::string file;  // empty: the file of the condition, whose path is unknown
  int line = 0;
  std::string text;
  bool chooses = false;  // a condition or the key of a table; text is that alone
};

struct File;

/// A function that a value can be, while the slice follows it.
struct Callable {
  const File* file = nullptr;
  std::size_t scope = 0;
  bool partly_called = false;  // functools.partial: positions differ from those of the call
  bool operator==(const Callable&) const = default;
};

struct Origin {
  Source source = Source::kUniform;
  bool by_name = false;  // known only by the name of a library's attribute; its object is unknown
  bool number = false;   // the value is the rank's number itself
  bool object = false;   // an instance or function is part of it: its results are its own
  bool number_compared = false;          // only a comparison of that number
  std::vector<OriginStep> chain{};       // from the condition to the source of its value
  std::vector<std::string> variables{};  // environment variables that it depends on
  // Tested like options and counters of a run: whether it is set (`x is None`), every n-th time, or
  // against a counter that all ranks share.
  bool like_an_option = false;
  // What decides that the value is None, if the rank itself decides it: for `x is None`.
  std::shared_ptr<const Origin> none{};
  std::string unknown{};              // the first name that no known source defines; empty: none
  std::vector<Callable> callables{};  // internal to the slicer; empty in results
};

using Sources = std::map<std::string, SourceText>;

/// A condition and its place: `line` is the statement whose names are meant.
struct Asked {
  const SourceText* text = nullptr;
  int line = 0;
  // The frames around the function, innermost first; null: none.
  const CallString* callers = nullptr;
};

/// `expression` is Python; anything else has an unknown origin.
Origin origin_of(std::string_view expression, const Asked& asked, const Sources& sources);

/// A decorator of the function around a line: it runs the function on some ranks only, or not
/// always.
struct DecoratorAt {
  Node decorator;
  int line = 0;
  bool by_name = false;
};
std::optional<DecoratorAt> ranks_let_in(const SourceText& text, int line, const Sources& sources);

/// The decorator that keeps the results of the function around a line.
std::optional<DecoratorAt> cache_around(const SourceText& text, int line, const Sources& sources);

}  // namespace ddpdoctor::program
