// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/plain_json.h"

#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;
using nlohmann::json;

constexpr std::size_t kMostJsonBytes = std::size_t{512} << 20U;
constexpr std::size_t kMostJsonValues = std::size_t{1} << 26U;

/// Collects values; containers are filled when they end, so that each is contiguous.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(PlainDocument& document) : document_(document) {}

  bool null() override {
    return add({});
  }
  bool boolean(bool value) override {
    return add(PlainValue::of_flag(value));
  }
  bool number_integer(number_integer_t value) override {
    return add(PlainValue::of_whole(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kLargest =
        static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
    return add(PlainValue::of_whole(static_cast<std::int64_t>(std::min(value, kLargest))));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(PlainValue::of_number(value));
  }
  bool string(string_t& value) override {
    return add(document_.keep(std::move(value)));
  }
  bool binary(binary_t&) override {
    return add({});
  }
  bool key(string_t& value) override {
    return add(document_.keep(std::move(value)));
  }
  bool start_object(std::size_t) override {
    return open(Kind::kDict);
  }
  bool start_array(std::size_t) override {
    return open(Kind::kList);
  }
  bool end_object() override {
    return close();
  }
  bool end_array() override {
    return close();
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }

  [[nodiscard]] std::size_t position() const {
    return position_;
  }
  void finish() {
    while (!open_.empty()) {
      close();
    }
    document_.root = stack_.empty() ? PlainValue{} : stack_.front();
  }

 private:
  bool add(PlainValue value) {
    stack_.push_back(value);
    return stack_.size() + document_.values() <= kMostJsonValues;
  }
  bool open(Kind kind) {
    open_.push_back(stack_.size());
    return add(document_.make(kind));
  }
  bool close() {
    const std::size_t place = open_.back();
    open_.pop_back();
    std::size_t count = stack_.size() - place - 1;
    count -= stack_[place].is(Kind::kDict) ? count % 2 : 0;  // drops a key without a value
    document_.append(stack_[place], std::span(stack_).subspan(place + 1, count));
    stack_.resize(place + 1);
    return true;
  }

  PlainDocument& document_;
  std::vector<PlainValue> stack_;
  std::vector<std::size_t> open_;  // positions in the stack
  std::size_t position_ = 0;
};

}  // namespace

base::Result<void> read_plain_json(std::string_view text, const std::string& name,
                                   PlainDocument& out) {
  out.clear();
  if (text.size() > kMostJsonBytes) {
    return base::failure(fmt::format("{} is too large: {} of JSON", name,
                                     base::bytes(static_cast<double>(text.size()))));
  }
  Builder builder(out);
  const bool whole = json::sax_parse(text, &builder);
  builder.finish();
  if (!whole && builder.position() + 1 < text.size()) {
    return base::failure(
        fmt::format("{} is not JSON: unexpected text at byte {}", name, builder.position()));
  }
  out.cut = !whole;
  return {};
}

}  // namespace ddpdoctor::imports
