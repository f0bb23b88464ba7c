// SPDX-License-Identifier: Apache-2.0
// Recognizes the user's context managers that catch exceptions: a class whose `__exit__` may return
// a true value, and a `@contextmanager` with a `try` around its `yield`.
#pragma once

#include "collector/program/origin/origin.h"
#include "collector/program/questions/code.h"

namespace ddpdoctor::program {

/// The `with` statement of `code` may swallow an exception that is raised inside it.
bool is_caught_by_context(const Code& code, std::size_t with, const SourceText& text,
                          const Sources& sources);

}  // namespace ddpdoctor::program
