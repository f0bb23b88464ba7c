// SPDX-License-Identifier: Apache-2.0
// Containers of the standard library that PythonObjects does not know: their lengths and items.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/python/objects.h"

namespace ddpdoctor::stacks {

/// len() of a str, bytes, tuple, list, dict, set, frozenset, deque or range, their subclasses
/// included (which may count otherwise: the caller looks for a __len__); nothing for other objects,
/// and where the number is not plausible.
std::optional<std::uint64_t> length_of(PythonObjects& objects, RemoteAddress object);

/// Items of a tuple, list, set, frozenset or deque, keys of a dict, in their order (of sets:
/// anyhow), at most `limit`; nothing for other objects or when it cannot be read.
std::optional<std::vector<RemoteAddress>> items_of(PythonObjects& objects, RemoteAddress object,
                                                   std::size_t limit);

/// An int of any size as Python writes it, up to 120 bits; nothing for larger ones and other
/// objects.
std::optional<std::string> integer_text(PythonObjects& objects, RemoteAddress object);

/// Whether an int of any size is not zero.
std::optional<bool> integer_truth(PythonObjects& objects, RemoteAddress object);

}  // namespace ddpdoctor::stacks
