// SPDX-License-Identifier: Apache-2.0
// What one decision came out to, and what it reads, as values for the model.
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

/// The function that a value belongs to, and where in it the process is.
struct Whereabouts {
  std::string file;
  std::string function;
  int at = 0;
};

class DecisionReader {
 public:
  /// Both must outlive this.
  DecisionReader(Evaluator& evaluator, std::vector<model::SeenValue>& out)
      : evaluator_(evaluator), out_(out) {}

  /// What is known of a decision before it is worked out.
  struct Asked {
    program::Node condition;
    int line = 0;
    bool is_test = true;            // its truth decides, not its value
    Since since{};                  // of a decision that lies ahead the value is a stale one
    std::optional<bool> outcome{};  // where the rank is tells it
    /// Whether what working it out has read was assigned since.
    std::function<Since(const std::set<std::string>& read)> assigned_since{};
  };

  void add(const Whereabouts& where, const Asked& asked, Names& names);

  /// A value that is not known yet.
  static model::SeenValue made(model::ValueRole role, const Whereabouts& where, int line,
                               const std::string& expression);
  /// Its text without what looks like a secret, by the name of the expression or by its own shape.
  std::string shown(const Value& value, const std::string& expression);

 private:
  void add_operands(const Whereabouts& where, int line, const Expression& whole,
                    const Expression& part, const Since& since, Names& names);

  Evaluator& evaluator_;
  std::vector<model::SeenValue>& out_;
};

}  // namespace ddpdoctor::values
