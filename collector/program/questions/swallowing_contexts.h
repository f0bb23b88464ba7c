// SPDX-License-Identifier: Apache-2.0
// The user's own contexts that catch exceptions: a class whose `__exit__` may return a true value,
// and a `@contextmanager` with a try around its `yield`.
#pragma once

#include "collector/program/origin/origin.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// `with guard:` (the statement `with` of `code`): an exception inside it may end there.
bool is_caught_by_context(const Code& code, std::size_t with, const SourceText& text,
                          const Sources& sources);

}  // namespace ddpdoctor::program
