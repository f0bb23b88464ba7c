// SPDX-License-Identifier: Apache-2.0
// A Python value, read from another process or computed from such values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::values {

using stacks::RemoteAddress;

/// The result of an expression. `address` is the object it was read from; 0 = it was computed.
struct Value {
  enum class Kind {
    kUnknown,        // text: the reason
    kNone,           //
    kBool,           // integer
    kInteger,        // integer
    kReal,           // real
    kString,         // text
    kSequence,       // computed: items; text: "tuple", "list" or "set"
    kObject,         // any other object of the process, by its address
    kMethod,         // a function written in Python (address), bound to items[0]
    kMade,           // an object that exists only here: `type`; items: names and values alternately
    kBuiltinMethod,  // text: the name of a method of a built-in type, bound to items[0]
  };

  Kind kind = Kind::kUnknown;
  std::string text{};
  std::int64_t integer = 0;
  double real = 0;
  RemoteAddress address = 0;
  RemoteAddress type = 0;  // for kMade
  std::vector<Value> items{};

  [[nodiscard]] bool known() const {
    return kind != Kind::kUnknown;
  }
  [[nodiscard]] bool is_number() const {
    return kind == Kind::kBool || kind == Kind::kInteger || kind == Kind::kReal;
  }
  /// The number as a double.
  [[nodiscard]] double as_real() const {
    return kind == Kind::kReal ? real : static_cast<double>(integer);
  }

  static Value unknown(std::string why) {
    return {.kind = Kind::kUnknown, .text = std::move(why)};
  }
  static Value none() {
    return {.kind = Kind::kNone};
  }
  static Value boolean(bool value) {
    return {.kind = Kind::kBool, .integer = value ? 1 : 0};
  }
  static Value number(std::int64_t value) {
    return {.kind = Kind::kInteger, .integer = value};
  }
  static Value number(double value) {
    return {.kind = Kind::kReal, .real = value};
  }
  static Value string(std::string value) {
    return {.kind = Kind::kString, .text = std::move(value)};
  }
  static Value sequence(std::string_view kind, std::vector<Value> items) {
    return {.kind = Kind::kSequence, .text = std::string(kind), .items = std::move(items)};
  }
};

}  // namespace ddpdoctor::values
