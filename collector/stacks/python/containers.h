// SPDX-License-Identifier: Apache-2.0
// Lengths and items of standard-library containers that PythonObjects does not support.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/python/objects.h"

namespace ddpdoctor::stacks {

/// len() of a str, bytes, tuple, list, dict, set, frozenset, deque or range, including subclasses
/// (the caller checks for a __len__ of their own). Nothing for other objects and implausible
/// numbers.
std::optional<std::uint64_t> length_of(PythonObjects& objects, RemoteAddress object);

/// Items of a tuple, list, set, frozenset or deque, or keys of a dict, in their order (for sets, in
/// any order), at most `limit`; nothing for other objects or if they cannot be read.
std::optional<std::vector<RemoteAddress>> items_of(PythonObjects& objects, RemoteAddress object,
                                                   std::size_t limit);

/// The Python spelling of an int of up to 120 bits; nothing for larger ones and other objects.
std::optional<std::string> integer_text(PythonObjects& objects, RemoteAddress object);

/// True if an int of any size is not zero.
std::optional<bool> integer_truth(PythonObjects& objects, RemoteAddress object);

}  // namespace ddpdoctor::stacks
