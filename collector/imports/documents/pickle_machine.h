// SPDX-License-Identifier: Apache-2.0
// Pickle's stack machine, over plain data only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/documents/pickle_bytes.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// A larger document is refused.
inline constexpr std::size_t kMostPickledValues = std::size_t{1} << 26U;

/// The result of an instruction.
enum class Step { kGoOn, kStop, kCut, kRefused };

/// A stack of values with direct access to its memory.
class ValueStack {
 public:
  [[nodiscard]] std::size_t size() const {
    return count_;
  }
  [[nodiscard]] bool empty() const {
    return count_ == 0;
  }
  PlainValue& operator[](std::size_t index) {
    return values_[index];
  }
  [[nodiscard]] const PlainValue& operator[](std::size_t index) const {
    return values_[index];
  }
  [[nodiscard]] const PlainValue& back() const {
    return values_[count_ - 1];
  }
  [[nodiscard]] const PlainValue& front() const {
    return values_.front();
  }
  void push_back(const PlainValue& value) {
    make_room(1);
    values_[count_++] = value;
  }
  void pop_back() {
    --count_;
  }
  /// Sets the size to fewer values, or to the number written into the reserved room.
  void resize(std::size_t count) {
    count_ = count;
  }
  void make_room(std::size_t more) {
    if (values_.size() - count_ < more) {
      values_.resize(2 * (count_ + more));
    }
  }
  PlainValue* data() {
    return values_.data();
  }
  [[nodiscard]] std::span<const PlainValue> above(std::size_t from) const {
    return std::span(values_).subspan(from, count_ - from);
  }

 private:
  std::vector<PlainValue> values_;  // may be longer than the stack
  std::size_t count_ = 0;
};

/// Runs one pickle into a document. Refuses instructions whose operands are missing; stops at the
/// end of the bytes.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, PlainDocument& document)
      : in_(bytes), document_(document) {}

  Step run();
  /// Moves open containers into their parents, innermost first.
  void close();

  [[nodiscard]] std::size_t at() const {
    return in_.at();
  }
  [[nodiscard]] const std::string& complaint() const {
    return complaint_;
  }
  [[nodiscard]] bool wants_to_run() const {
    return wants_to_run_;
  }

 private:
  /// Runs the frequent instructions as long as possible; step() handles the rest.
  void hurry();
  Step step(unsigned char op);
  Step other(unsigned char op);
  Step number(unsigned char op);
  Step text(unsigned char op);
  Step container(unsigned char op);
  Step filled(unsigned char op);
  Step memo(unsigned char op);
  Step remember(std::optional<std::uint64_t> index);
  Step recall(std::optional<std::uint64_t> index);
  Step named(unsigned char op);
  Step name_value(std::string_view module, std::string_view name);
  Step call();

  Step refuse(std::string why) {
    complaint_ = std::move(why);
    return Step::kRefused;
  }
  Step forbid(std::string what) {
    wants_to_run_ = true;
    return refuse(std::move(what));
  }
  Step push(PlainValue value) {
    stack_.push_back(value);
    return Step::kGoOn;
  }
  Step push(std::optional<std::int64_t> whole) {
    return whole ? push(PlainValue::of_whole(*whole)) : Step::kCut;
  }
  Step push(std::optional<std::string_view> text) {
    return text ? push(PlainValue::of_text(*text)) : Step::kCut;
  }
  /// The number of values above the uppermost mark; nothing if there is no mark.
  std::optional<std::size_t> mark() const;
  Step gather(PlainValue::Kind kind, std::size_t from, std::size_t marks);
  Step fill(PlainValue::Kind kind, std::size_t from, std::size_t marks);
  [[nodiscard]] std::span<const PlainValue> above(std::size_t from) const {
    return stack_.above(from);
  }

  PickleBytes in_;
  PlainDocument& document_;
  ValueStack stack_;
  std::vector<std::size_t> marks_;  // positions of marks in the stack
  std::vector<PlainValue> memo_;
  std::string complaint_;
  bool wants_to_run_ = false;
};

}  // namespace ddpdoctor::imports
