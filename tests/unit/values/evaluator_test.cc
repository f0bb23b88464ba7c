// SPDX-License-Identifier: Apache-2.0
// Every expression of python_values.py, as real interpreters compute it and as it is read from
// outside. What cannot be known must not be guessed.
#include "collector/values/evaluator.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/program/syntax/source_index.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/python/scopes.h"
#include "collector/stacks/target/live_target.h"
#include "collector/values/from_syntax.h"
#include "collector/values/source_files.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::values {
namespace {

using test::PythonInstallation;

const std::string kProgram = tests::source_file("tests/support/python_values.py");

struct Asked {
  std::string expression;
  std::string said;  // by Python
};

/// Python's repr of classes and functions has an address; ours has none.
std::string comparable(std::string text) {
  const auto replace = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from)) {
      text.replace(at, from.size(), to);
    }
  };
  replace("<Mode.WRITE: 'rw'>", "Mode.WRITE");
  replace("<Level.HIGH: 2>", "Level.HIGH");
  return text;
}

class Evaluation : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    installations = test::python_installations(GetParam());
    if (installations.empty()) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
    }
  }

  std::vector<PythonInstallation> installations;
};

/// The interpreter of a program that is blocked in stand().
class Standing {
 public:
  explicit Standing(const PythonInstallation& python) : child_({python.command, kProgram}) {
    const auto lines = child_.lines_until("ready");
    bool known = true;
    for (const std::string& line : lines.value_or(std::vector<std::string>())) {
      if (line == "unknown") {
        known = false;
        continue;
      }
      const std::size_t tab = line.find('\t');
      (known ? known_ : unknown_).push_back({line.substr(0, tab), line.substr(tab + 1)});
    }
    std::string problem;
    target_ = std::move(*stacks::LiveTarget::open(child_.pid(), files_));
    reader_ = stacks::open_python(*target_, problem);
    for (const stacks::PythonThreadState& state : reader_->thread_states()) {
      for (stacks::PythonFrame& one : reader_->decode(reader_->read_stack(state.address))) {
        if (one.frame.function == "stand") {
          frame_ = one;
        }
      }
    }
  }

  std::string value_of(const std::string& expression) {
    const program::SourceText text({{1, expression}});
    const program::Node statement = program::index_of(text).root().first_child();
    Evaluator evaluator(reader_->objects(), {});
    evaluator.set_bodies([this](const std::string& file, int line, std::string_view name) {
      return sources_.body(child_.pid(), file, line, name);
    });
    stacks::Scope scope(reader_->objects(), frame_.raw);
    const Value value = evaluator.evaluate(expression_of(statement.first_child()), scope);
    reason_ = value.text;
    return evaluator.text(value, 400);
  }

  [[nodiscard]] const std::vector<Asked>& known() const {
    return known_;
  }
  [[nodiscard]] const std::vector<Asked>& unknown() const {
    return unknown_;
  }
  [[nodiscard]] const std::string& reason() const {
    return reason_;
  }

 private:
  test::ChildProcess child_;
  stacks::ElfCache files_;
  std::unique_ptr<stacks::LiveTarget> target_;
  std::unique_ptr<stacks::PythonReader> reader_;
  stacks::PythonFrame frame_;
  SourceFiles sources_;
  std::vector<Asked> known_;
  std::vector<Asked> unknown_;
  std::string reason_;
};

TEST_P(Evaluation, GivesWhatPythonItselfGives) {
  for (const PythonInstallation& python : installations) {
    Standing standing(python);
    ASSERT_GT(standing.known().size(), 100U) << python.command;
    for (const Asked& asked : standing.known()) {
      const std::string ours = standing.value_of(asked.expression);
      // Of containers other than lists and tuples only the length is reported.
      const bool told_otherwise = ours.find(" of ") != std::string::npos;
      if (!told_otherwise) {
        EXPECT_EQ(ours, comparable(asked.said))
            << asked.expression << " in " << python.command << ": " << standing.reason();
      }
    }
  }
}

TEST_P(Evaluation, OfWhatRunsOtherCodeIsUnknownAndSaysWhy) {
  for (const PythonInstallation& python : installations) {
    Standing standing(python);
    ASSERT_GT(standing.unknown().size(), 10U);
    for (const Asked& asked : standing.unknown()) {
      EXPECT_EQ(standing.value_of(asked.expression), "") << asked.expression;
      EXPECT_NE(standing.reason(), "") << asked.expression;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Evaluation, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
