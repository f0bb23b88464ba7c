// SPDX-License-Identifier: Apache-2.0
// Where the value of a condition comes from: a slice backwards over assignments, parameters,
// returns, attributes and properties, across the files at hand, to a row of the libraries' tables.
// It asks what things are, never what the user calls them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// A line of the slice.
struct OriginStep {
  std::string file;  // empty: that of the condition, whose path is not known
  int line = 0;
  std::string text;
};

struct File;

/// A function that a value can be, while a slice is followed.
struct Callable {
  const File* file = nullptr;
  std::size_t scope = 0;
  bool partly_called = false;  // functools.partial: positions are not those of the call
  bool operator==(const Callable&) const = default;
};

struct Origin {
  Source source = Source::kUniform;
  bool by_name = false;  // only the name of a library's attribute says so, its object is not known
  bool number = false;   // the value is the number of the rank itself
  bool object = false;   // an instance or a function goes into it: what it gives out is its own
  bool number_compared = false;          // a comparison of that number, and nothing else
  std::vector<OriginStep> chain{};       // from the condition to where its value comes from
  std::vector<std::string> variables{};  // of the environment that go into it
  // Asked as options and counters of the run are: whether it is there at all (`x is None`), every
  // n-th time, against a counter that all ranks share.
  bool like_an_option = false;
  std::string unknown{};              // the first name that no source at hand defines; empty: none
  std::vector<Callable> callables{};  // of the slicer's own; none in an answer
};

using Sources = std::map<std::string, SourceText>;

/// What a condition asks and where: the line is that of the statement whose names are meant.
struct Asked {
  const SourceText* text = nullptr;
  int line = 0;
  const CallString* callers = nullptr;  // the frames around the function, innermost first; or none
};

/// `expression` is Python; what is none has an unknown origin.
Origin origin_of(std::string_view expression, const Asked& asked, const Sources& sources);

/// The decorator of the function around a line that lets some ranks only into it.
struct LettingIn {
  Node decorator;
  int line = 0;
  bool by_name = false;
};
std::optional<LettingIn> ranks_let_in(const SourceText& text, int line, const Sources& sources);

}  // namespace ddpdoctor::program
