// SPDX-License-Identifier: Apache-2.0
// What the calls of a piece of source do for others, by the class of their objects: `x.get()` takes
// work where x is a queue, and not where x is a dict.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/libraries/methods.h"
#include "collector/program/seen_object.h"
#include "collector/program/source_text.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

using Sources = std::map<std::string, SourceText>;

/// A call of a method or function. The views and nodes live as long as the sources.
struct MethodCall {
  Node call;                       // on the lines that were asked for
  std::string object{};            // "self.incoming"; empty for a function
  std::string_view method{};       // "put"
  bool known = false;              // the class of the object is known, or what the function is
  const MethodRow* row = nullptr;  // null: nothing of what the table lists, if known
  std::string_view owner{};        // the object's class in that table
  Node made{};         // the call that constructs the object; no node: unknown, or several
  int number = 0;      // of the object in its process, if it was seen; else 0
  bool inner = false;  // the user's function that `call` runs makes this call; known ones only
};

/// The calls on some lines, and those of the user's functions that they run; in source order.
std::vector<MethodCall> calls_on(const SourceText& text, const Sources& sources, int first,
                                 int last, SeenObjects seen = {});
/// The same for the statement that covers a line, or the header there without its suite.
std::vector<MethodCall> calls_at(const SourceText& text, const Sources& sources, int line,
                                 SeenObjects seen = {});
/// The same for all calls of a file that may have the effect.
std::vector<MethodCall> calls_that(const SourceText& text, const Sources& sources,
                                   MethodDoes effect);

enum class Told : std::uint8_t {
  kNo,
  kUnknown,  // some library class has such a method, and the object's class is unknown
  kYes,
};
Told told(const MethodCall& call, MethodDoes effect);
/// The strongest answer of several calls.
Told told(const std::vector<MethodCall>& calls, MethodDoes effect);

/// The call ends a wait in the method `waiting` of an object whose class is `owner`.
Told ends(const MethodCall& call, std::string_view owner, std::string_view waiting);

}  // namespace ddpdoctor::program
