// SPDX-License-Identifier: Apache-2.0
// An expression of Python as the evaluator sees it: a tree of what it understands. Whatever else
// Python allows is one kind, kOther, with the name of its grammar rule.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::values {

/// One node. What `text`, `words` and `parts` hold stands beside each kind.
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
    kString,   // text: what it says
    kTuple,    // parts
    kList,     // parts
    kSet,      // parts
    kNot,      // parts[0]
    kAnd,      // parts, two
    kOr,       // parts, two
    kCompare,  // parts, words: the operator between each two, "not in" as one
    kUnary,    // text: "-", "+" or "~"; parts[0]
    kBinary,   // text: "+", "//", …; parts, two
    kConditional,  // parts: the test, then, else
    kNamed,        // text := parts[0]
    kMade,         // what an __init__ puts into its object: words, their values: parts
    kLet,          // text = parts[0] in a function, then parts[1]
    kOther,        // text: what it is, for people
  };

  Kind kind = Kind::kOther;
  std::string text{};
  std::vector<Expression> parts{};
  std::vector<std::string> words{};
  std::string source{};  // as the user wrote it, on one line
};

}  // namespace ddpdoctor::values
