// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/decisions.h"

#include <string>

#include "collector/program/syntax/bindings.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::string texts(const std::vector<Decision>& decisions) {
  std::string out;
  for (const Decision& one : decisions) {
    out += (out.empty() ? "" : " | ") + one.text;
  }
  return out;
}

std::string decided_in(std::string_view text) {
  const SourceText lines = source(text);
  const SourceIndex& index = index_of(lines);
  return texts(decisions_of(index, index.function_at(1)));
}

TEST(Decisions, AreEverythingThatChooses) {
  EXPECT_EQ(decided_in("if a:\n    x()\nelif b and c:\n    y()\n"), "a | b and c | b");
  EXPECT_EQ(decided_in("while f(x if y else z):\n    pass\n"), "f(x if y else z) | y");
  EXPECT_EQ(decided_in("for i in range(n):\n    pass\n"), "range(n)");
  EXPECT_EQ(decided_in("rank == 0 and dist.barrier()"), "rank == 0");
  EXPECT_EQ(decided_in("assert ok, \"no\""), "ok");
  EXPECT_EQ(decided_in("x = [f(i) for i in q if i > 2]"), "q | i > 2");
  EXPECT_EQ(decided_in("match role:\n    case 'a' if ok:\n        pass\n"), "'a' | ok");
  EXPECT_EQ(decided_in("try:\n    f()\nexcept (A, B) as e:\n    pass\nexcept:\n    pass"),
            "(A, B) | ");
}

TEST(Decisions, OfAScopeAreItsOwn) {
  const SourceText lines = source(R"(
def outer():
    def inner():
        if a:
            pass
    call(lambda: x if y else z)
    if b:
        pass
)");
  const SourceIndex& index = index_of(lines);
  EXPECT_EQ(texts(decisions_of(index, index.function_at(1))), "b");
  EXPECT_EQ(texts(decisions_of(index, index.function_at(3))), "a");
}

TEST(Decisions, KnowTheirStatementAndLine) {
  const SourceText lines = source("if (a and\n        b):\n    pass\n");
  const SourceIndex& index = index_of(lines);
  const auto all = decisions_of(index, index.function_at(1));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].text, "(a and b)");
  EXPECT_EQ(all[0].statement, 0U);
  EXPECT_EQ(all[1].kind, DecisionKind::kAnd);
  EXPECT_TRUE(all[0].is_test());
}

std::string bound_in(std::string_view text) {
  const SourceText lines = source(text);
  const SourceIndex& index = index_of(lines);
  std::string out;
  for (const Binding& one : bindings_of(index, index.scopes().front())) {
    out += (out.empty() ? "" : " | ") + one.target + (one.item ? "[]" : "") + "=" +
           std::string(one.value.text());
  }
  return out;
}

TEST(Bindings, AreEveryWayToChangeAName) {
  EXPECT_EQ(bound_in("x = y = f()"), "x=f() | y=f()");
  EXPECT_EQ(bound_in("a, (b, *c) = 1, pair"), "a=1 | b=pair | c=pair");
  EXPECT_EQ(bound_in("self.stop |= flag"), "self.stop=flag");
  EXPECT_EQ(bound_in("todo[0].x = 1"), "todo[]=1");
  EXPECT_EQ(bound_in("del todo[0], x"), "todo[]= | x=");
  EXPECT_EQ(bound_in("if (n := g()) > 3: pass"), "n=g()");
  EXPECT_EQ(bound_in("for i, j in pairs: pass"), "i=pairs | j=pairs");
  EXPECT_EQ(bound_in("with a() as b, c: pass"), "b=a()");
  EXPECT_EQ(bound_in("try: pass\nexcept E as e: pass"), "e=E");
  EXPECT_EQ(bound_in("import a.b, c as d\nfrom m import n"), "a= | d= | n=");
  EXPECT_EQ(bound_in("def f(): x = 1\nclass C: pass"), "f= | C=");
  EXPECT_EQ(bound_in("self.todo.pop()"), "self.todo[]=");
  EXPECT_EQ(bound_in("x: int = 3"), "x=3");
  EXPECT_EQ(bound_in("match v:\n    case [a, m.K] if a: pass"), "a=");
}

TEST(Bindings, ChangeWhatIsReachedThroughThem) {
  const Binding binding{.target = "self.cfg"};
  EXPECT_TRUE(may_change(binding, "self.cfg"));
  EXPECT_TRUE(may_change(binding, "self.cfg.stop"));
  EXPECT_FALSE(may_change(binding, "self.cfgs"));
  EXPECT_FALSE(may_change(binding, "self"));
}

}  // namespace
}  // namespace ddpdoctor::program
