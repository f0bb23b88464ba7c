// SPDX-License-Identifier: Apache-2.0
// How many items a `for` loop goes over, worked out from what its header names: for a loop that a
// rank has left, whose iterator is gone. Ranges, containers, enumerate, zip, islice, tqdm and
// torch's DataLoader; anything else has no number.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/stacks/python/objects.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

class LoopItems {
 public:
  /// Both must outlive this.
  LoopItems(Evaluator& evaluator, stacks::PythonObjects& objects)
      : evaluator_(evaluator), objects_(objects) {}

  /// Of what stands behind `in`, in a scope; nothing where only running code tells.
  std::optional<std::int64_t> of(const Expression& iterable, Names& names);

 private:
  std::optional<std::int64_t> of_call(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> of_part(const Expression& part, Names& names, int depth);
  std::optional<std::int64_t> of_value(const Value& value, int depth);
  std::optional<std::int64_t> of_range(const Expression& call, Names& names);
  std::optional<std::int64_t> shortest(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> slice(const Expression& call, Names& names, int depth);
  /// An expression about the name `it`, with this value.
  Value ask(const Expression& expression, const Value& of);

  Evaluator& evaluator_;
  stacks::PythonObjects& objects_;
};

}  // namespace ddpdoctor::values
