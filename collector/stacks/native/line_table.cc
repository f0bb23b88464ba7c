// SPDX-License-Identifier: Apache-2.0
// The three decoders. Line arithmetic wraps in 64 bits and is clamped at the end: a hostile table
// can only give a wrong line.
#include "collector/stacks/native/line_table.h"

#include <climits>

namespace ddpdoctor::stacks {

namespace {

constexpr std::int64_t kCodeUnit = 2;      // bytes of an instruction since 3.6
constexpr std::int64_t kNoLine310 = -128;  // line delta that means "no line" in 3.10

/// Reads a table byte by byte; after the end it returns zeros and sets a flag.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const {
    return next_ >= bytes_.size();
  }

  std::uint8_t byte() {
    if (at_end()) {
      return 0;
    }
    return std::to_integer<std::uint8_t>(bytes_[next_++]);
  }

  std::int64_t signed_byte() {
    return static_cast<std::int8_t>(byte());
  }

  /// Six bits per byte, least significant first; bit 6 says that another byte follows.
  std::uint32_t varint() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; !at_end(); shift += 6) {
      const std::uint32_t bits = byte();
      if (shift < 32) {
        value |= (bits & 63U) << shift;
      }
      if ((bits & 64U) == 0) {
        break;
      }
    }
    return value;
  }

  /// The sign is the lowest bit.
  std::int64_t signed_varint() {
    const std::uint32_t value = varint();
    const auto magnitude = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -magnitude : magnitude;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
};

int known(std::int64_t number) {
  return number > 0 && number <= INT_MAX ? static_cast<int>(number) : 0;
}

/// One entry of the 3.11 table, with the table's columns: from 0, -1 = unknown.
struct CodeLocation {
  bool has_line = true;
  std::int64_t end_line_delta = 0;
  std::int64_t column = -1;
  std::int64_t end_column = -1;
};

// Entry kinds of Objects/locations.md.
constexpr unsigned kLastShortForm = 9;
constexpr unsigned kLastOneLineForm = 12;
constexpr unsigned kNoColumns = 13;
constexpr unsigned kLongForm = 14;

/// Reads what follows the first byte of an entry and advances `line`.
CodeLocation read_location(Cursor& cursor, unsigned kind, std::int64_t& line) {
  CodeLocation location;
  if (kind <= kLastShortForm) {
    const std::int64_t second = cursor.byte();
    location.column = static_cast<std::int64_t>(kind) * 8 + (second >> 4U);
    location.end_column = location.column + (second & 15);
  } else if (kind <= kLastOneLineForm) {
    line += static_cast<std::int64_t>(kind) - (kLastShortForm + 1);
    location.column = cursor.byte();
    location.end_column = cursor.byte();
  } else if (kind == kNoColumns) {
    line += cursor.signed_varint();
  } else if (kind == kLongForm) {
    line += cursor.signed_varint();
    location.end_line_delta = cursor.varint();
    location.column = static_cast<std::int64_t>(cursor.varint()) - 1;
    location.end_column = static_cast<std::int64_t>(cursor.varint()) - 1;
  } else {
    location.has_line = false;
  }
  return location;
}

}  // namespace

SourceRange find_in_lnotab(std::span<const std::byte> table, int first_line, std::int64_t offset) {
  Cursor cursor(table);
  std::int64_t line = first_line;
  std::int64_t start = 0;
  while (!cursor.at_end()) {
    start += cursor.byte();
    if (start > offset) {
      break;
    }
    line += cursor.signed_byte();
  }
  return {.line = known(line)};
}

SourceRange find_in_line_table_310(std::span<const std::byte> table, int first_line,
                                   std::int64_t offset) {
  if (offset < 0) {
    return {.line = known(first_line)};
  }
  Cursor cursor(table);
  std::int64_t line = first_line;
  std::int64_t end = 0;
  while (!cursor.at_end()) {
    end += cursor.byte();
    const std::int64_t delta = cursor.signed_byte();
    if (delta != kNoLine310) {
      line += delta;
    }
    if (offset < end) {
      return {.line = delta == kNoLine310 ? 0 : known(line)};
    }
  }
  return {};
}

SourceRange find_in_location_table(std::span<const std::byte> table, int first_line,
                                   std::int64_t offset) {
  if (offset < 0) {
    return {.line = known(first_line)};
  }
  Cursor cursor(table);
  std::int64_t line = first_line;
  std::int64_t end = 0;
  while (!cursor.at_end()) {
    const unsigned head = cursor.byte();
    const CodeLocation location = read_location(cursor, (head >> 3U) & 15U, line);
    end += static_cast<std::int64_t>((head & 7U) + 1) * kCodeUnit;
    if (offset < end) {
      if (!location.has_line) {
        return {};
      }
      return {.line = known(line),
              .column = known(location.column + 1),
              .end_line = known(line + location.end_line_delta),
              .end_column = known(location.end_column + 1)};
    }
  }
  return {};
}

}  // namespace ddpdoctor::stacks
