// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "collector/program/questions/expressions.h"

namespace ddpdoctor::program {
namespace {

using Names = std::vector<std::string_view>;

Names callees(std::string_view text) {
  Names out;
  for (const Call& call : calls_in(text)) {
    out.push_back(call.callee);
  }
  return out;
}

TEST(Expressions, CallsAreNamedAsTheyAreWritten) {
  EXPECT_EQ(callees("total = reduce(net.metrics.compute(x), op)"),
            (Names{"reduce", "net.metrics.compute"}));
  EXPECT_EQ(callees("return f(x).mean()"), (Names{"f", ".mean"}));
  EXPECT_EQ(callees("hooks[0](x).item()"), (Names{".item"}));
}

TEST(Expressions, WordsBeforeABracketAreNoCalls) {
  EXPECT_EQ(callees("while (a and not (b)) or c in (1, 2): yield (d)"), Names{});
  EXPECT_EQ(callees("log('map(x)')  # map(y)"), (Names{"log"}));
  EXPECT_EQ(callees("cut_short(a, b"), Names{});
}

TEST(Expressions, ACallReachesToItsOwnBracket) {
  const std::string_view text = "deque(map(partial(step, net), loader), maxlen=0)";
  const auto calls = calls_in(text);
  ASSERT_EQ(calls.size(), 3);
  EXPECT_EQ(text.substr(calls[1].begin, calls[1].end - calls[1].begin),
            "map(partial(step, net), loader)");
}

TEST(Expressions, AKeywordIsToldFromAPositionalArgument) {
  const auto argument = [](std::string_view text, std::string_view keyword) {
    return std::string(keyword_argument(calls_in(text).front(), keyword));
  };
  EXPECT_EQ(argument("reduce(x, group = pg)", "group"), "pg");
  EXPECT_EQ(argument("reduce(x, group=None)", "group"), "None");
  EXPECT_EQ(argument("reduce(group, groups=pg)", "group"), "");
  EXPECT_EQ(argument("check(group == pg)", "group"), "");
}

TEST(Expressions, WordsAreNamesNumbersAndStrings) {
  EXPECT_EQ(words_in("event.kind == 'end' and n > 3"), (Names{"event", "kind", "'end'", "n", "3"}));
  EXPECT_EQ(words_in("except* errors.Stop as e"), (Names{"errors", "Stop", "e"}));
}

TEST(Expressions, WordsYieldedAreThoseOfAYield) {
  EXPECT_EQ(words_yielded("sent = yield (item, last)  # yield x"), (Names{"item", "last"}));
  EXPECT_EQ(words_yielded("x = \"yield x\""), Names{});
}

TEST(Expressions, APieceOfAStatementIsRead) {
  EXPECT_EQ(callees("elif ready(x):"), Names{"ready"});
  EXPECT_EQ(callees("for k in sorted(sums)"), Names{"sorted"});
  EXPECT_EQ(callees("def f(x=g()):"), Names{"g"});
  EXPECT_EQ(callees("    \"\"\"call(x) of a text that goes on"), Names{});
  EXPECT_EQ(calls_in("  reduce(x, op=a(b), *rest)").front().arguments,
            (Names{"x", "op=a(b)", "*rest"}));
}

TEST(Expressions, ValuesReadAreLastNames) {
  EXPECT_EQ(values_read("not self.todo and len(state.seats) > 2"), (Names{"todo", "seats"}));
  EXPECT_EQ(values_read("self.inbox.empty() or ready()"), (Names{"inbox"}));
}

TEST(Expressions, ChangesAreAssignmentsAndChangingMethods) {
  for (const std::string_view statement :
       {"self.done = True", "done += 1", "x.done.append(1)", "del done[0]",
        "if (done := f()):", "done.popleft()", "    done.set_result(3)"}) {
    EXPECT_TRUE(changes(statement, "done")) << statement;
  }
  for (const std::string_view statement :
       {"if done == 1:", "undone = 1", "while done >= n:", "f(done=1)", "print(done)",
        "done.index(3)", "# done = 1", "x = 'done = 1'"}) {
    EXPECT_FALSE(changes(statement, "done")) << statement;
  }
}

TEST(Expressions, VariablesOfTheEnvironmentAreAskedForInManyWays) {
  for (const std::string_view text :
       {"os.environ['DEBUG'] == '1'", "(given := os.environ.get(\"DEBUG\")) is not None",
        "int(os.getenv('DEBUG', '0'))", "'DEBUG' in os.environ", "\"DEBUG\" not in environ"}) {
    EXPECT_EQ(variables_asked(text), (Names{"DEBUG"})) << text;
  }
  for (const std::string_view text : {"environ", "x in os.environ", "config.get('DEBUG')",
                                      "os.environ.items('DEBUG')", "in os.environ"}) {
    EXPECT_TRUE(variables_asked(text).empty()) << text;
  }
}

TEST(Expressions, KnowWhatAComprehensionCallsForEachElement) {
  for (const char* text : {"x = [share(i) for i in ids]", "x = wrap([n(share(i)) for i in ids])",
                           "x = [i for i in ids if share(i)]", "x = [f(i) for i in ids]"}) {
    EXPECT_EQ(comprehension_calling(text, "share").substr(0, 12), "for i in ids") << text;
  }
  for (const char* text : {"x = Plan([f(i) for i in ids]).share()", "share([f(i) for i in ids])",
                           "x = share() + sum(i for i in ids)", "share(ids)"}) {
    EXPECT_EQ(comprehension_calling(text, "share"), "") << text;
  }
}

TEST(Expressions, AComprehensionIsTheFirstInBrackets) {
  EXPECT_EQ(comprehension_calling("return {k: total(v[k]) for k in sorted(v)}", ""),
            "for k in sorted(v)");
  EXPECT_EQ(comprehension_calling("x = sum(f(i) for i in (1, 2))  # for y in z", ""),
            "for i in (1, 2)");
  for (const std::string_view text :
       {"for x in loader:", "log('(a for a in b)')", "f(a for a in b"}) {
    EXPECT_EQ(comprehension_calling(text, ""), "") << text;
  }
}

TEST(ArgumentsOf, AreAsWritten) {
  const std::string text = "x = minimize(self.loss, x0=[1, f(2)], *rest)(3)";
  const auto calls = calls_in(text);
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.front().arguments,
            (std::vector<std::string_view>{"self.loss", "x0=[1, f(2)]", "*rest"}));
  EXPECT_TRUE(calls_in("f()").front().arguments.empty());
}

}  // namespace
}  // namespace ddpdoctor::program
