// SPDX-License-Identifier: Apache-2.0
// The number of items of a `for` loop, computed from its header: for a loop that a rank has left
// and whose iterator no longer exists. Supports ranges, containers, enumerate, zip, islice, tqdm,
// torch's DataLoader and generators of the user's that yield once for each item of one of these;
// anything else has no number.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

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
  /// The attributes that the last answer read, and the names in functions it entered.
  [[nodiscard]] const std::set<std::string>& read() const {
    return read_;
  }

 private:
  std::optional<std::int64_t> of_call(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> of_part(const Expression& part, Names& names, int depth);
  std::optional<std::int64_t> of_value(const Value& value, int depth);
  std::optional<std::int64_t> of_generator(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> of_range(const Expression& call, Names& names);
  std::optional<std::int64_t> shortest(const Expression& call, Names& names, int depth);
  std::optional<std::int64_t> slice(const Expression& call, Names& names, int depth);
  /// Evaluates an expression in which the name `it` has this value.
  Value ask(const Expression& expression, const Value& of);
  Value evaluate(const Expression& expression, Names& names);

  Evaluator& evaluator_;
  stacks::PythonObjects& objects_;
  std::set<std::string> read_;
  bool only_now_ = false;
};

}  // namespace ddpdoctor::values
