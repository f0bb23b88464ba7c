// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/source_index.h"

#include <string>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

const SourceText kTrainer = source(R"(
import torch

class Trainer:
    @rank_zero_only
    def save(self, path, *, force=False):
        if force:
            write(path)

    async def fit(self, loader, /, epochs: int = 3, *rest, **options):
        def hook(grad):
            return lambda x: x + grad
        for batch in loader:
            if (batch and
                    self.ready):
                dist.barrier()
            elif epochs: stop()
        return hook

def stream():
    yield 1
)");

std::string headers_around(const SourceText& text, std::string_view part) {
  const SourceIndex& index = index_of(text);
  std::string out;
  for (std::size_t i = index.statement_at(line_with(text, part)); i != kNone;
       i = index.statements()[i].parent) {
    out += std::string(out.empty() ? "" : " < ") +
           std::string(index.statements()[i].node.grammar_name());
  }
  return out;
}

TEST(SourceIndex, FindsTheInnermostFunctionWithItsQualifiedName) {
  const SourceIndex& index = index_of(kTrainer);
  EXPECT_EQ(index.function_at(line_with(kTrainer, "write(path)")).qualified, "Trainer.save");
  EXPECT_EQ(index.function_at(line_with(kTrainer, "return lambda")).qualified,
            "Trainer.fit.<locals>.hook");
  EXPECT_EQ(index.function_at(line_with(kTrainer, "barrier")).qualified, "Trainer.fit");
  EXPECT_EQ(index.function_at(line_with(kTrainer, "@rank_zero_only")).name, "save");
  EXPECT_EQ(index.function_at(1).name, "<module>");
  ASSERT_NE(index.scope_of_frame(line_with(kTrainer, "return lambda"), "<lambda>"), nullptr);
  EXPECT_EQ(index.scope_of_frame(line_with(kTrainer, "barrier"), "Trainer")->kind,
            ScopeKind::kClass);
  EXPECT_EQ(index.scope_of_frame(line_with(kTrainer, "barrier"), "nowhere"), nullptr);
}

TEST(SourceIndex, KnowsParametersDecoratorsAndKindsOfFunctions) {
  const SourceIndex& index = index_of(kTrainer);
  const Scope& save = index.function_at(line_with(kTrainer, "write(path)"));
  ASSERT_EQ(save.decorators.size(), 1U);
  EXPECT_EQ(save.decorators[0].text(), "rank_zero_only");
  ASSERT_EQ(save.parameters.size(), 3U);
  EXPECT_EQ(save.parameters[2].name, "force");
  EXPECT_EQ(save.parameters[2].kind, Parameter::Kind::kKeywordOnly);
  EXPECT_EQ(save.parameters[2].otherwise.text(), "False");
  const Scope& fit = index.function_at(line_with(kTrainer, "barrier"));
  EXPECT_TRUE(fit.is_async);
  EXPECT_FALSE(fit.is_generator);
  ASSERT_EQ(fit.parameters.size(), 5U);
  EXPECT_EQ(fit.parameters[1].kind, Parameter::Kind::kPositionalOnly);
  EXPECT_EQ(fit.parameters[2].name, "epochs");
  EXPECT_EQ(fit.parameters[3].kind, Parameter::Kind::kStar);
  EXPECT_EQ(fit.parameters[4].kind, Parameter::Kind::kDoubleStar);
  EXPECT_TRUE(index.function_at(line_with(kTrainer, "yield")).is_generator);
}

TEST(SourceIndex, FindsStatementsAndTheHeadersAroundThem) {
  EXPECT_EQ(headers_around(kTrainer, "dist.barrier"),
            "expression_statement < if_statement < for_statement < function_definition < "
            "class_definition");
  const SourceIndex& index = index_of(kTrainer);
  const Statement& inlined = index.statements()[index.statement_at(line_with(kTrainer, "elif"))];
  EXPECT_EQ(inlined.node.text(), "stop()");
  EXPECT_EQ(index.statements()[inlined.parent].node.kind(), NodeKind::kElif);
  const Statement& condition =
      index.statements()[index.statement_at(line_with(kTrainer, "self.ready"))];
  EXPECT_EQ(condition.node.kind(), NodeKind::kIf);
  EXPECT_EQ(condition.node.field(Field::kCondition).one_line(), "(batch and self.ready)");
  EXPECT_EQ(index.statement_at(2), kNone);
}

TEST(SourceIndex, IsMadeOnceForATextAndAnewAfterAChange) {
  SourceText text = source("if x:\n    a()");
  const SourceText copy = text;
  const SourceIndex* index = &index_of(text);
  EXPECT_EQ(index, &index_of(text));
  EXPECT_EQ(index, &index_of(copy));
  text[3] = "    b()";
  EXPECT_EQ(index_of(text).statements().size(), 3U);
  EXPECT_EQ(index_of(copy).statements().size(), 2U);
}

TEST(SourceIndex, OfSomeLinesFindsWhatTheyStandUnder) {
  const SourceText whole = source(R"(
def main():
    for batch in loader:
        loss = model(
            batch,
        )
        if rank == 0:
            log("""
              text
            """)
            dist.barrier()
        else:
            skip()
    dist.all_reduce(x)
)");
  const SourceText some = only(whole, {"if rank", "dist.barrier", "all_reduce"});
  EXPECT_EQ(headers_around(some, "dist.barrier"),
            "expression_statement < if_statement < with_statement < with_statement");
  EXPECT_EQ(headers_around(some, "all_reduce"), "expression_statement < with_statement");
  const SourceText cut = only(whole, {"loss = model", "if rank", "log(", "else", "skip"});
  EXPECT_EQ(headers_around(cut, "loss = model"), "expression_statement < with_statement");
  EXPECT_EQ(headers_around(cut, "log("), "expression_statement < if_statement < with_statement");
  EXPECT_EQ(headers_around(cut, "skip"), "expression_statement < else_clause < with_statement");
  const SourceText orphan = only(whole, {"else", "skip"});
  EXPECT_EQ(headers_around(orphan, "skip"), "expression_statement < else_clause < with_statement");
}

TEST(SourceIndex, ToleratesWhatIsNoPython) {
  for (const char* text : {"", "\n\n", ")))", "if if if", "def", "\t x\n  y\n z", "\"\"\"", "x = (",
                           "class A:\n  def f(self):\n    return {[(", "\x01\x02\xff"}) {
    const SourceIndex& index = index_of(source(text));
    EXPECT_EQ(index.function_at(1).name.empty(), false) << text;
  }
  const SourceText broken = source("def f():\n    x = = 3\n    if y:\n        g()\n");
  EXPECT_EQ(index_of(broken).function_at(4).name, "f");
}

TEST(SourceIndex, OfDeepNestingStaysBounded) {
  const std::string deep = "x = " + std::string(5000, '(') + "1" + std::string(5000, ')');
  EXPECT_FALSE(index_of(source(deep)).empty());
  std::string stairs;
  for (int i = 0; i < 1000; ++i) {
    stairs += std::string(static_cast<std::size_t>(i), ' ') + "if x:\n";
  }
  EXPECT_FALSE(index_of(source(stairs)).empty());
  SourceText gaps;
  for (int i = 1; i < 3000; ++i) {
    gaps[2 * i] = std::string(static_cast<std::size_t>(i % 150), ' ') + "else:";
  }
  EXPECT_FALSE(index_of(gaps).empty());
}

}  // namespace
}  // namespace ddpdoctor::program
