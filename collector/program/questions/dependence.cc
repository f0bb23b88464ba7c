// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/dependence.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collector/program/origin/origin.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::program {
namespace {

/// Cached, because each condition of a file is needed many times.
struct Known {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, Dependence> answers;
};

struct Answers {
  std::unique_ptr<Known> known = std::make_unique<Known>();
};

Dependence ask(std::string_view expression, const SourceText& text, int line) {
  static const Sources kNoOthers;
  const Source source = origin_of(expression, {.text = &text, .line = line}, kNoOthers).source;
  if (source == Source::kRank) {
    return Dependence::kRank;
  }
  return source >= Source::kUnknown ? Dependence::kData : Dependence::kNone;
}

}  // namespace

Dependence dependence(std::string_view expression, const SourceText& text, int line) {
  const Answers& answers = text.once<Answers>([] { return Answers{}; });
  const std::pair key(line, std::string(expression));
  {
    const std::lock_guard lock(answers.known->mutex);
    if (const auto found = answers.known->answers.find(key);
        found != answers.known->answers.end()) {
      return found->second;
    }
  }
  const Dependence answer = ask(expression, text, line);
  const std::lock_guard lock(answers.known->mutex);
  return answers.known->answers.emplace(key, answer).first->second;
}

bool asks_the_clock(const SourceText& text, int line, std::string_view expression) {
  static const Sources kNoOthers;
  const auto calls = calls_in(expression);
  return std::any_of(calls.begin(), calls.end(), [&](const Call& call) {
    const std::string asked = std::string(call.callee) + "()";
    return origin_of(asked, {.text = &text, .line = line}, kNoOthers).source == Source::kClock;
  });
}

std::optional<Block> rank_decorator(const SourceText& text, int line) {
  static const Sources kNoOthers;
  const auto found = ranks_let_in(text, line, kNoOthers);
  if (!found) {
    return std::nullopt;
  }
  Block out;
  out.kind = BlockKind::kFunction;
  out.line = found->line;
  out.condition = found->decorator.one_line();
  out.text = "@" + out.condition;
  return out;
}

}  // namespace ddpdoctor::program
