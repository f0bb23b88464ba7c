// SPDX-License-Identifier: Apache-2.0
// What a condition depends on, by its origin within one file. Who has the other files asks
// program::origin_of.
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "collector/program/origin/origin.h"
#include "collector/python_source/blocks.h"

namespace ddpdoctor::python_source {
namespace {

/// Each condition of a file is asked for many times.
struct Known {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, Dependence> answers;
};

struct Answers {
  std::unique_ptr<Known> known = std::make_unique<Known>();
};

Dependence ask(std::string_view expression, const Lines& lines, int line) {
  static const program::Sources kNoOthers;
  const program::Source source =
      program::origin_of(expression, {.text = &lines, .line = line}, kNoOthers).source;
  if (source == program::Source::kRank) {
    return Dependence::kRank;
  }
  return source >= program::Source::kUnknown ? Dependence::kData : Dependence::kNone;
}

}  // namespace

Dependence dependence(std::string_view expression, const Lines& lines, int line) {
  const Answers& answers = lines.once<Answers>([] { return Answers{}; });
  const std::pair key(line, std::string(expression));
  {
    const std::lock_guard lock(answers.known->mutex);
    if (const auto found = answers.known->answers.find(key);
        found != answers.known->answers.end()) {
      return found->second;
    }
  }
  const Dependence answer = ask(expression, lines, line);
  const std::lock_guard lock(answers.known->mutex);
  return answers.known->answers.emplace(key, answer).first->second;
}

}  // namespace ddpdoctor::python_source
