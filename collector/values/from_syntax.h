// SPDX-License-Identifier: Apache-2.0
// From a syntax tree to what the evaluator understands.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "collector/program/syntax/node.h"
#include "collector/values/expression.h"

namespace ddpdoctor::values {

/// The expression of a node; parts that the evaluator does not know become kOther.
Expression expression_of(program::Node node);

/// What a function or lambda returns, as one expression: its body only names values and returns
/// or raises, at most under conditions. Nothing when it does anything else.
std::optional<Expression> returned_by(program::Node function);

/// What an __init__ puts into its object, when it does nothing else.
std::optional<Expression> made_by(program::Node init);

/// The function or lambda whose code object says that it begins at this line (that of its first
/// decorator); a lambda is called "<lambda>". No node when there is none, or more than one.
program::Node function_at(program::Node root, int first_line, std::string_view qualname);

}  // namespace ddpdoctor::values
