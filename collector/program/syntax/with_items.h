// SPDX-License-Identifier: Apache-2.0
// The contexts of a `with` statement.
#pragma once

#include <vector>

#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

/// The expressions that a `with` enters, in order: "a" and "b" of `with a as x, b:` and of
/// `with (a, b):`.
std::vector<Node> entered_by(Node with);

/// `async with`: it enters by `__aenter__`, and no thread waits in it.
bool is_async(Node with);

}  // namespace ddpdoctor::program
