// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/tokens.h"

#include "tests/unit/python_source/source_text.h"

namespace ddpdoctor::python_source {
namespace {

std::vector<std::string> statements(std::string_view text) {
  std::vector<std::string> out;
  const Lines lines = lines_of(text);
  for (const LogicalLine& line : logical_lines(lines)) {
    out.push_back(text_of(line.tokens));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(LogicalLines, JoinBracketsAndBackslashesAndDropComments) {
  EXPECT_EQ(statements(R"(
x = f(a,  # first
      b
)
y = 1 + \
    2
# only a comment

z = 3)"),
            (Texts{"x = f(a, b)", "y = 1 + 2", "z = 3"}));
}

TEST(LogicalLines, KeepStringsWhole) {
  EXPECT_EQ(statements("s = 'if x: # no' + \"a\\\"b\" + rb'\\n'\nt = 2"),
            (Texts{"s = 'if x: # no' + \"a\\\"b\" + rb'\\n'", "t = 2"}));
}

TEST(LogicalLines, ReadNestedFormattedStrings) {
  EXPECT_EQ(statements("f(f\"{d['a']} {{x}} {d[\"b\"]}\")\nt = 2"),
            (Texts{"f(f\"{d['a']} {{x}} {d[\"b\"]}\")", "t = 2"}));
}

TEST(LogicalLines, RunThroughTripleQuotedText) {
  const Lines lines =
      lines_of("def f():\n    \"\"\"if a:\n  it's ( \\\"\"\" \n\"\"\"\n    return 1");
  const auto found = logical_lines(lines);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].first_line, 2);
  EXPECT_EQ(found[1].last_line, 4);
  EXPECT_EQ(found[2].indent, 4);
}

TEST(LogicalLines, ForgetWhatWasOpenAtAGap) {
  const Lines lines = {
      {5, "x = f("}, {40, "if rank == 0:"}, {41, "    y()"}, {50, "s = '''"}, {60, "z = 1"}};
  const auto found = logical_lines(lines);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(text_of(found[1].tokens), "if rank == 0:");
  EXPECT_EQ(text_of(found[4].tokens), "z = 1");
}

TEST(LogicalLines, CountTabsAsPythonDoes) {
  const Lines lines = lines_of("if x:\n\ty = 1\n        z = 2");
  const auto found = logical_lines(lines);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].indent, found[2].indent);
}

TEST(LogicalLines, SurviveGarbage) {
  for (const char* text :
       {"", "\\", ")))]]", "((((", "'", "\"\"\"", "f'{", "\xff\xfe(", "a\\\nb\\", "rb'", "'''\\"}) {
    EXPECT_LE(statements(text).size(), 2U) << text;
  }
}

TEST(NameChains, FollowDots) {
  const std::string text = "self.trainer.rank == get(x).y";
  const auto tokens = tokens_of(text);
  const auto chains = name_chains(tokens);
  ASSERT_EQ(chains.size(), 4U);
  EXPECT_EQ(chains[0].words.size(), 3U);
  EXPECT_EQ(chains[3].words.front(), "y");
}

}  // namespace
}  // namespace ddpdoctor::python_source
