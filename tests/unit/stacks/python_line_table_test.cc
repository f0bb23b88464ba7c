// SPDX-License-Identifier: Apache-2.0
// Tables as CPython wrote them for small functions, with what CPython's dis and co_positions report
// for them.
#include <climits>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "collector/stacks/native/line_table.h"

namespace ddpdoctor::stacks {

static bool operator==(const SourceRange& a, const SourceRange& b) {
  return a.line == b.line && a.column == b.column && a.end_line == b.end_line &&
         a.end_column == b.end_column;
}

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> numbers) {
  std::vector<std::byte> out;
  for (const int number : numbers) {
    out.push_back(static_cast<std::byte>(number));
  }
  return out;
}

// x = (a,\n 2) … for i in a: x += (\n 1) … return x: lines go back for the multi-line statement
// (255 = -1).
const auto kLnotab = bytes({0, 1, 2, 1, 2, 255, 4, 3, 8, 1, 2, 1, 2, 255, 6, 2});

TEST(Lnotab, StartsOfLinesAreFound) {
  const std::vector<std::pair<int, int>> starts = {{0, 2},  {2, 3},  {4, 2},  {8, 5},
                                                   {16, 6}, {18, 7}, {20, 6}, {26, 8}};
  for (const auto& [offset, line] : starts) {
    EXPECT_EQ(find_in_lnotab(kLnotab, 1, offset).line, line) << offset;
  }
}

TEST(Lnotab, AnOffsetInsideALineBelongsToIt) {
  EXPECT_EQ(find_in_lnotab(kLnotab, 1, 6).line, 2);
  EXPECT_EQ(find_in_lnotab(kLnotab, 1, 1000).line, 8);
}

TEST(Lnotab, AFrameNotYetBegunIsAtTheFirstLine) {
  EXPECT_EQ(find_in_lnotab(kLnotab, 7, -1).line, 7);
  EXPECT_EQ(find_in_lnotab({}, 7, 0).line, 7);
}

TEST(Lnotab, AHalfEntryAtTheEndDoesNoHarm) {
  EXPECT_EQ(find_in_lnotab(bytes({0, 1, 2}), 1, 4).line, 2);
}

// A with statement: the exit code returns to line 2 after line 3.
const auto kTable310 = bytes({6, 1, 6, 1, 28, 255, 8, 2, 2, 1, 2, 1, 6, 255, 4, 2});

TEST(LineTable310, RangesAreAsCoLinesSays) {
  const std::vector<std::pair<int, int>> lines = {{0, 2},  {6, 3},  {12, 2}, {39, 2}, {40, 4},
                                                  {48, 5}, {50, 6}, {52, 5}, {58, 7}, {61, 7}};
  for (const auto& [offset, line] : lines) {
    EXPECT_EQ(find_in_line_table_310(kTable310, 1, offset).line, line) << offset;
  }
}

TEST(LineTable310, BeyondTheTableAndInGapsNoLineIsKnown) {
  EXPECT_EQ(find_in_line_table_310(kTable310, 1, 62).line, 0);
  const auto gap = bytes({4, 1, 4, 128, 4, 1});
  EXPECT_EQ(find_in_line_table_310(gap, 1, 5).line, 0);
  EXPECT_EQ(find_in_line_table_310(gap, 1, 9).line, 3);
}

TEST(LineTable310, AFrameNotYetBegunIsAtTheFirstLine) {
  EXPECT_EQ(find_in_line_table_310(kTable310, 5, -2).line, 5);
}

// return g(a,\n 1) + (a\n .b): short, one-line and long forms.
const auto kLocations =
    bytes({128, 0, 221, 11, 12, 136, 81, 216, 6,   7, 241, 3,  1, 12,  9, 244, 0, 1,
           12,  9, 216, 12, 13, 220, 4,  5,   241, 5, 2,   12, 7, 240, 0, 2,   5, 7});

TEST(LocationTable, RangesAreAsCoPositionsSays) {
  // co_positions counts columns from 0, we from 1.
  const std::vector<std::pair<int, SourceRange>> places = {
      {0, {.line = 1, .column = 1, .end_line = 1, .end_column = 1}},
      {1, {.line = 2, .column = 12, .end_line = 2, .end_column = 13}},
      {6, {.line = 2, .column = 12, .end_line = 2, .end_column = 13}},
      {7, {.line = 2, .column = 14, .end_line = 2, .end_column = 15}},
      {8, {.line = 3, .column = 7, .end_line = 3, .end_column = 8}},
      {9, {.line = 2, .column = 12, .end_line = 3, .end_column = 9}},
      {16, {.line = 3, .column = 13, .end_line = 3, .end_column = 14}},
      {17, {.line = 4, .column = 5, .end_line = 4, .end_column = 6}},
      {22, {.line = 2, .column = 12, .end_line = 4, .end_column = 7}},
      {24, {.line = 2, .column = 5, .end_line = 4, .end_column = 7}}};
  for (const auto& [instruction, place] : places) {
    const SourceRange found = find_in_location_table(kLocations, 1, instruction * 2);
    EXPECT_EQ(found, place) << instruction << ": " << found.line << ":" << found.column << "-"
                            << found.end_line << ":" << found.end_column;
  }
}

TEST(LocationTable, BeyondTheTableNothingIsKnown) {
  EXPECT_EQ(find_in_location_table(kLocations, 1, 50), SourceRange{});
  EXPECT_EQ(find_in_location_table({}, 1, 0), SourceRange{});
}

TEST(LocationTable, AnEntryWithoutColumnsHasALine) {
  const auto table = bytes({0x80 | 13 << 3, 2});  // no columns, one line down
  EXPECT_EQ(find_in_location_table(table, 4, 0), (SourceRange{.line = 5, .end_line = 5}));
}

TEST(LocationTable, AnEntryWithoutLocationIsUnknown) {
  EXPECT_EQ(find_in_location_table(bytes({0x80 | 15 << 3}), 4, 0), SourceRange{});
}

TEST(LocationTable, AnEndlessNumberEndsWithTheTable) {
  std::vector<std::byte> table(5000, std::byte{0x7f});
  table[0] = std::byte{0x80 | 14 << 3};
  const SourceRange found = find_in_location_table(table, 1, 0);
  EXPECT_GE(found.line, 0);
  EXPECT_EQ(found.column, 0);
}

TEST(LocationTable, ALineBeyondAnIntIsUnknown) {
  const auto table = bytes({0x80 | 13 << 3, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03});
  EXPECT_EQ(find_in_location_table(table, INT_MAX, 0).line, 0);
}

}  // namespace
}  // namespace ddpdoctor::stacks
