// SPDX-License-Identifier: Apache-2.0
// The result of one decision and the values that it reads, as values for the model.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/model/observed_values.h"
#include "collector/program/syntax/node.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"

namespace ddpdoctor::values {

/// The function that a value belongs to, and the process's position in it.
struct Whereabouts {
  std::string file;
  std::string function;
  int at = 0;
};

class DecisionReader {
 public:
  /// Both references must outlive this.
  DecisionReader(Evaluator& evaluator, std::vector<model::SeenValue>& out)
      : evaluator_(evaluator), out_(out) {}

  /// What is known of a decision before it is evaluated.
  struct Asked {
    program::Node condition;
    int line = 0;
    bool is_test = true;            // its truth decides, not its value
    Since since{};                  // for a decision ahead of the rank, the value is stale
    std::optional<bool> outcome{};  // known if the rank's position implies it
    /// Whether the values read during evaluation have been assigned since.
    std::function<Since(const std::set<std::string>& read)> assigned_since{};
    /// Of a part of the condition alone: `step` may be another one, and `loss` still the same.
    std::function<Since(program::Node part)> since_of_part{};
  };

  void add(const Whereabouts& where, const Asked& asked, Names& names);

  /// A value whose text is not known yet.
  static model::SeenValue made(model::ValueRole role, const Whereabouts& where, int line,
                               const std::string& expression);
  /// The text of a value, with secrets removed; these are recognized by the expression's name or
  /// the value's own form.
  std::string shown(const Value& value, const std::string& expression);

 private:
  std::optional<bool> outcome_of(const Asked& asked, bool known, Names& names);
  std::optional<bool> settled(program::Node part, const Asked& asked, Names& names);
  void add_operands(const Whereabouts& where, const Asked& asked, program::Node part,
                    const Since& since, Names& names);
  void add_operand(const Whereabouts& where, const Asked& asked, program::Node part,
                   const Since& since, Names& names);

  Evaluator& evaluator_;
  std::vector<model::SeenValue>& out_;
};

}  // namespace ddpdoctor::values
