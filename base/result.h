// SPDX-License-Identifier: Apache-2.0
// Result<T>: the value, or an Error that a person can act on. Our own code throws no exceptions.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace ddpdoctor::base {

/// What went wrong: `what` names the object and the reason, `hint` the next step.
struct Error {
  std::string what;
  std::string hint;
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string what, std::string hint = {}) {
  return tl::unexpected<Error>(Error{.what = std::move(what), .hint = std::move(hint)});
}

}  // namespace ddpdoctor::base

// Yields the value of a Result or returns its error from the enclosing function.
#define TRY(...)                                      \
  __extension__({                                     \
    auto try_result = (__VA_ARGS__);                  \
    if (!try_result)                                  \
      return tl::make_unexpected(try_result.error()); \
    std::move(*try_result);                           \
  })
