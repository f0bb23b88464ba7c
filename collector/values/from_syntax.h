// SPDX-License-Identifier: Apache-2.0
// Converts a syntax tree to expressions that the evaluator supports.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "collector/program/syntax/node.h"
#include "collector/values/expression.h"

namespace ddpdoctor::values {

/// The expression of a node; unsupported parts become kOther.
Expression expression_of(program::Node node);

/// The result of a function or lambda as one expression, if its body only assigns names and returns
/// or raises, possibly under conditions. Nothing if it does anything else.
std::optional<Expression> returned_by(program::Node function);

/// The attributes that an __init__ sets, if it does nothing else.
std::optional<Expression> made_by(program::Node init);

/// The function or lambda whose code object begins at this line (the line of its first decorator);
/// a lambda is named "<lambda>". A null node if there is none, or more than one.
program::Node function_at(program::Node root, int first_line, std::string_view qualname);

}  // namespace ddpdoctor::values
