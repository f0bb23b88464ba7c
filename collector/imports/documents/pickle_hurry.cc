// SPDX-License-Identifier: Apache-2.0
// The fast path for the instructions that dumps consist of, on raw pointers: 16,384 dumps contain
// some billions of them. Anything unusual (the end of the bytes, a missing mark, a rare
// instruction) is left to PickleMachine::step, which handles all instructions and errors.
#include <bit>
#include <cstring>

#include "collector/imports/documents/pickle_machine.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;

/// Number of values that may be pushed before the room is checked again.
constexpr std::size_t kRoom = 256;
/// Bytes that an instruction may read without a check: opcode, length, eight bytes.
constexpr std::size_t kLookAhead = 10;

template <typename Number>
Number load(const char* at) {
  Number value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// The machine's state in registers.
struct Burst {
  const char* at = nullptr;
  const char* end = nullptr;  // end of the bytes
  PlainValue* base = nullptr;
  PlainValue* top = nullptr;
  std::span<PlainValue> memo;

  bool push(const PlainValue& value, std::size_t width) {
    *top++ = value;
    at += width;
    return true;
  }
  bool recall(std::size_t index, std::size_t width) {
    return index < memo.size() && push(memo[index], width);
  }
  bool remember(std::size_t index, std::size_t width) {
    if (index >= memo.size() || top == base) {
      return false;
    }
    memo[index] = top[-1];
    at += width;
    return true;
  }
  bool text() {
    const auto length = load<std::uint32_t>(at + 1);
    return length <= static_cast<std::size_t>(end - at) - 5 &&
           push(PlainValue::of_text({at + 5, length}), 5 + std::size_t{length});
  }
  /// Two's complement of up to eight bytes.
  bool long_whole() {
    const auto width = static_cast<unsigned char>(at[1]);
    if (width == 0 || width > sizeof(std::int64_t)) {
      return false;
    }
    const unsigned unused = 64U - 8U * width;
    const auto bits = load<std::uint64_t>(at + 2) << unused;
    return push(PlainValue::of_whole(static_cast<std::int64_t>(bits) >> unused), 2U + width);
  }
  bool number() {
    return push(PlainValue::of_number(
                    std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(at + 1)))),
                9);
  }
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(top - base);
  }
  /// Moves the values above the uppermost mark into the container below it.
  bool fill(Kind kind, std::vector<std::size_t>& marks, PlainDocument& document) {
    const std::size_t from = marks.empty() ? 0 : marks.back();
    if (from == 0 || from > size() || !base[from - 1].is(kind) ||
        (kind == Kind::kDict && (size() - from) % 2 != 0) ||
        document.values() + size() > kMostPickledValues) {
      return false;
    }
    document.append(base[from - 1], {base + from, top});
    top = base + from;
    marks.pop_back();
    ++at;
    return true;
  }
  bool pair(PlainDocument& document) {
    if (size() < 2 || document.values() + size() > kMostPickledValues) {
      return false;
    }
    const PlainValue made = document.make(Kind::kList);
    document.append(made, {top - 2, top});
    top -= 2;
    return push(made, 1);
  }
};

/// Runs one instruction; false if this path does not support it.
inline bool run_one(Burst& burst, std::vector<std::size_t>& marks, PlainDocument& document) {
  const char* const at = burst.at;
  switch (static_cast<unsigned char>(*at)) {
    case 'h':
      return burst.recall(load<std::uint8_t>(at + 1), 2);
    case 'j':
      return burst.recall(load<std::uint32_t>(at + 1), 5);
    case 'q':
      return burst.remember(load<std::uint8_t>(at + 1), 2);
    case 'r':
      return burst.remember(load<std::uint32_t>(at + 1), 5);
    case 'K':
      return burst.push(PlainValue::of_whole(load<std::uint8_t>(at + 1)), 2);
    case 'M':
      return burst.push(PlainValue::of_whole(load<std::uint16_t>(at + 1)), 3);
    case 'J':
      return burst.push(PlainValue::of_whole(load<std::int32_t>(at + 1)), 5);
    case 'N':
      return burst.push(PlainValue{}, 1);
    case 0x88:
      return burst.push(PlainValue::of_flag(true), 1);
    case 0x89:
      return burst.push(PlainValue::of_flag(false), 1);
    case 'X':
      return burst.text();
    case 0x8a:
      return burst.long_whole();
    case 'G':
      return burst.number();
    case '(':
      marks.push_back(burst.size());
      ++burst.at;
      return true;
    case '}':
      return burst.push(document.make(Kind::kDict), 1);
    case ']':
      return burst.push(document.make(Kind::kList), 1);
    case 'u':
      return burst.fill(Kind::kDict, marks, document);
    case 'e':
      return burst.fill(Kind::kList, marks, document);
    case 0x86:
      return burst.pair(document);
    default:
      return false;
  }
}

}  // namespace

void PickleMachine::hurry() {
  const std::string_view left = in_.left();
  if (left.size() <= kLookAhead) {
    return;
  }
  stack_.make_room(kRoom);
  Burst burst{.at = left.data(),
              .end = left.data() + left.size(),
              .base = stack_.data(),
              .top = stack_.data() + stack_.size(),
              .memo = memo_};
  const char* const last = burst.end - kLookAhead;
  const PlainValue* const full = burst.top + kRoom;
  while (burst.at <= last && burst.top < full && run_one(burst, marks_, document_)) {
  }
  stack_.resize(burst.size());
  in_.skip(static_cast<std::size_t>(burst.at - left.data()));
}

}  // namespace ddpdoctor::imports
