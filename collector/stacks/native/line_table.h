// SPDX-License-Identifier: Apache-2.0
// Maps a bytecode position to a source position: CPython's three generations of line tables
// (Objects/lnotab_notes.txt, Objects/locations.md). Tables come from another process: every byte is
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ddpdoctor::stacks {

/// Lines and columns count from 1; `end_column` is one past the last column; 0 = unknown. Columns
/// count UTF-8 bytes, as CPython does.
struct SourceRange {
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;
};

/// co_lnotab, up to 3.9; `offset` in bytes. Negative (before the first instruction) gives
/// `first_line`.
SourceRange find_in_lnotab(std::span<const std::byte> table, int first_line, std::int64_t offset);

/// co_linetable of 3.10; `offset` in bytes.
SourceRange find_in_line_table_310(std::span<const std::byte> table, int first_line,
                                   std::int64_t offset);

/// co_linetable since 3.11; `offset` in bytes.
SourceRange find_in_location_table(std::span<const std::byte> table, int first_line,
                                   std::int64_t offset);

}  // namespace ddpdoctor::stacks
