// SPDX-License-Identifier: Apache-2.0
// The number of items of a `for` loop, computed from its header: for a loop that a rank has left
// and whose iterator no longer exists. Supports ranges, containers, enumerate, zip, islice, tqdm
// and torch's DataLoader; anything else has no number.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/stacks/python/objects.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

class LoopItems {
 public:
  /// Both references must outlive this.
  LoopItems(Evaluator& evaluator, stacks::PythonObjects& objects)
      : evaluator_(evaluator), objects_(objects) {}

  /// For the expression after `in`, in a scope; nothing if only running code could tell.
  std::optional<std::int64_t> of(const Expression& iterable, Names& names);

 private:
  std::optional<std::int64_t> of_call(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> of_part(const Expression& part, Names& names, int depth);
  std::optional<std::int64_t> of_value(const Value& value, int depth);
  std::optional<std::int64_t> of_range(const Expression& call, Names& names);
  std::optional<std::int64_t> shortest(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> slice(const Expression& call, Names& names, int depth);
  /// Evaluates an expression in which the name `it` has this value.
  Value ask(const Expression& expression, const Value& of);

  Evaluator& evaluator_;
  stacks::PythonObjects& objects_;
};

}  // namespace ddpdoctor::values
