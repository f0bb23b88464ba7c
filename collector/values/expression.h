// SPDX-License-Identifier: Apache-2.0
// A Python expression as the evaluator sees it: a tree of the kinds it supports. Every other
// expression has the kind kOther, with the name of its grammar rule.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::values {

/// One node. A comment at each kind says what `text`, `words` and `parts` hold.
struct Expression {
  enum class Kind {
    kName,       // text
    kAttribute,  // parts[0], text: the attribute's name
    kSubscript,  // parts[0][parts[1]]
    kCall,     // parts[0] called with the others; words: keyword of each argument, or "*", or empty
    kNone,     //
    kTrue,     //
    kFalse,    //
    kInteger,  // text
    kFloat,    // text
    kString,   // text: its content
    kTuple,    // parts
    kList,     // parts
    kSet,      // parts
    kNot,      // parts[0]
    kAnd,      // parts, two
    kOr,       // parts, two
    kCompare,  // parts, words: the operator between each two, "not in" as one
    kUnary,    // text: "-", "+" or "~"; parts[0]
    kBinary,   // text: "+", "//", …; parts, two
    kConditional,    // parts: the test, then, else
    kNamed,          // text := parts[0]
    kComprehension,  // text: "list", "set" or "generator"; words: names that each item of parts[1]
                     // gives a value; parts: what is made, of what, tests
    kMade,           // the attributes that __init__ sets: names in words, values in parts
    kLet,            // text = parts[0] in a function, then parts[1]
    kYielded,        // a generator with one item for each item of parts[0]
    kOther,          // text: a description for people
  };

  Kind kind = Kind::kOther;
  std::string text{};
  std::vector<Expression> parts{};
  std::vector<std::string> words{};
  std::string source{};  // as written in the source, on one line
};

}  // namespace ddpdoctor::values
