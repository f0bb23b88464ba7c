// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/handed_over.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "collector/program/origin/given_functions.h"
#include "collector/program/origin/passing.h"
#include "collector/program/questions/leaving.h"

namespace ddpdoctor::program {
namespace {

using As = HandedOver::As;

constexpr int kMostSteps = 6000;  // of all slices: some seconds of CPU

/// The step is in the function and reads one of its parameters: "rows[0]".
bool reads_parameter(const OriginStep& step, const Callee& callee) {
  const Scope& function = callee.function();
  const bool inside =
      (step.file.empty() || (callee.file->path != nullptr && step.file == *callee.file->path)) &&
      function.first_line <= step.line && step.line <= function.last_line;
  const std::string_view text = step.text;
  const auto end = std::find_if_not(text.begin(), text.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  });
  const std::string_view name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  return inside && name != "self" && number_of(function, name) != kNoParameter;
}

class HandedOverReader {
 public:
  explicit HandedOverReader(const Files& files) : files_(files) {}

  std::vector<HandedOver> read() {
    for (const GivenFunction& one : given_functions(files_)) {
      const Scope& function = one.callee.function();
      if (function.kind == ScopeKind::kFunction && !function.is_generator) {
        read_returns(one);
        read_items(one);
        read_calls(one);
      }
    }
    for (const File& file : files_.all()) {
      read_attributes(file);
    }
    if (steps_ > kMostSteps) {  // what was not asked may be the decision
      out_.clear();
    }
    return std::move(out_);
  }

 private:
  /// The answer of a slicer of its own, because the steps of each are bounded.
  template <typename Question>
  Origin ask(const Question& question) {
    if (steps_ > kMostSteps) {
      return {};
    }
    Slicer slicer(files_, nullptr);
    Origin out = question(slicer);
    steps_ += slicer.steps();
    return out;
  }

  /// It may differ between ranks. What a library passes to a function that it was handed is data of
  /// the rank.
  static bool may_differ(Origin& origin, const GivenFunction* given) {
    const bool of_data =
        given != nullptr && given->handed &&
        std::any_of(origin.chain.begin(), origin.chain.end(), [given](const OriginStep& step) {
          return reads_parameter(step, given->callee);
        });
    if (of_data && !is_own(origin.source)) {
      origin.source = Source::kData;
    }
    // Whether an option is set may be in a file, but no clock, draw or exception decides it.
    const bool by_itself = origin.source >= Source::kQueue && origin.source < Source::kRank &&
                           origin.source != Source::kFiles;
    return of_data || by_itself || (origin.source >= Source::kUnknown && !origin.like_an_option);
  }

  void add(As as, std::string_view name, const File& file, std::size_t scope, Origin origin,
           const GivenFunction* given) {
    if (origin.chain.empty() || !may_differ(origin, given)) {
      return;
    }
    OriginStep decides = std::move(origin.chain.front());
    if (decides.file.empty() && file.path != nullptr) {
      decides.file = *file.path;
    }
    out_.push_back({.as = as,
                    .name = std::string(name),
                    .function = file.scopes()[scope].qualified,
                    .decides = std::move(decides),
                    .source = origin.source});
  }

  Origin controls(const File& file, std::size_t scope, std::size_t statement) {
    return ask([&](Slicer& slicer) {
      return slicer.guards(file, scope, statement, {.file = &file, .scope = scope});
    });
  }

  /// `None if test else value`: what decides between them.
  Origin chosen(Node value, const File& file, std::size_t scope, std::size_t statement) {
    const auto parts = value.is(NodeKind::kConditional) ? value.children() : std::vector<Node>{};
    if (parts.size() != 3) {
      return {};
    }
    Origin test = ask([&](Slicer& slicer) {
      return slicer.value(parts[1], {.file = &file, .scope = scope, .statement = statement});
    });
    add_choice(test, file, parts[1]);
    return test;
  }

  void read_returns(const GivenFunction& given) {
    const auto& [file, scope] = given.callee;
    const SourceIndex& index = *file->facts->index;
    bool none = exits_of(given.callee.function().body).falls;
    bool other = false;
    std::set<std::string_view> flags;
    std::vector<std::pair<std::size_t, Node>> returns;
    for (const std::size_t at : index.statements_of(given.callee.function())) {
      const Node statement = index.statements()[at].node;
      if (!statement.is(NodeKind::kReturn)) {
        continue;
      }
      const Node value = without_parentheses(statement.first_child());
      returns.emplace_back(at, value);
      std::vector<Node> outcomes = {value};
      if (const auto parts = value.children();
          value.is(NodeKind::kConditional) && parts.size() == 3) {
        outcomes = {without_parentheses(parts[0]), without_parentheses(parts[2])};
      }
      for (const Node one : outcomes) {
        const bool absent = !one || one.is(NodeKind::kNone);
        none = none || absent;
        other = other || !absent;
        if (!absent && is_flag(one)) {
          flags.insert(one.text());
        }
      }
    }
    const bool absent = none && other;
    for (const auto& [at, value] : returns) {
      if (absent || flags.size() > 1) {
        Origin origin = controls(*file, scope, at);
        if (!may_differ(origin, &given)) {
          origin = chosen(value, *file, scope, at);
        }
        add(absent ? As::kNothing : As::kFlag, given.keyword, *file, scope, std::move(origin),
            &given);
      } else if (value && given.handed && !given.keyword.empty()) {
        const Where where{.file = file, .scope = scope, .statement = at};
        Origin origin = ask([&](Slicer& slicer) { return slicer.value(value, where); });
        if (is_own(origin.source)) {
          add_step(origin, *file, index.statements()[at].node);
          add(As::kValue, given.keyword, *file, scope, std::move(origin), nullptr);
        }
      }
    }
  }

  void read_items(const GivenFunction& given) {
    const auto& [file, scope] = given.callee;
    for (const Binding& one : file->facts->of_scope[scope]) {
      const Node item = one.item ? one.node.parent() : Node();
      const auto keys = item.fields(Field::kSubscript);
      const std::string_view key =
          item.is(NodeKind::kSubscript) && keys.size() == 1 ? string_text(keys.front()) : "";
      if (!key.empty()) {
        add(As::kItem, key, *file, scope, controls(*file, scope, one.statement), &given);
      }
    }
  }

  /// `self.log(…)` in a hook, where no class of the user's has the method.
  void read_calls(const GivenFunction& given) {
    const auto& [file, scope] = given.callee;
    for (const auto& [name, call] : file->facts->calls) {
      const Node callee = call.call.field(Field::kFunction);
      if (given.handed || call.scope != scope || !callee.is(NodeKind::kAttribute) ||
          callee.field(Field::kObject).text() != "self" || is_of_user(name)) {
        continue;
      }
      Origin origin = controls(*file, scope, file->facts->index->statement_of(call.call));
      if (is_own(origin.source)) {
        add(As::kCalled, name, *file, scope, std::move(origin), &given);
      }
    }
  }

  [[nodiscard]] bool is_of_user(const std::string& method) const {
    return std::any_of(files_.all().begin(), files_.all().end(), [&method](const File& file) {
      return file.facts->functions.contains(method) || file.facts->attributes.contains(method);
    });
  }

  /// `control.should_save = True`, where the object is none of the user's classes.
  void read_attributes(const File& file) {
    for (const auto& [name, set] : file.facts->attributes) {
      const Node object = set.binding.node.field(Field::kObject);
      if (!set.binding.node.is(NodeKind::kAttribute) || object.text() == "self" ||
          set.binding.statement == kNone) {
        continue;
      }
      Origin origin = controls(file, set.scope, set.binding.statement);
      if (!may_differ(origin, nullptr) && set.binding.value &&
          (set.binding.value.is(NodeKind::kComparison) ||
           set.binding.value.is(NodeKind::kBoolean) || set.binding.value.is(NodeKind::kNot))) {
        origin = ask([&](Slicer& slicer) {
          return slicer.value(set.binding.value, where_of(file, set.binding.value));
        });
        add_choice(origin, file, set.binding.value);
      }
      if (may_differ(origin, nullptr) &&
          Slicer(files_, nullptr).class_of_value(object, where_of(file, object)).kind !=
              Definition::Kind::kClass) {
        add(As::kAttribute, name, file, set.scope, std::move(origin), nullptr);
      }
    }
  }

  const Files& files_;
  std::vector<HandedOver> out_;
  int steps_ = 0;
};

}  // namespace

std::vector<HandedOver> handed_over(const Sources& users) {
  if (users.empty()) {
    return {};
  }
  const Files files(users.begin()->second, users);
  return HandedOverReader(files).read();
}

}  // namespace ddpdoctor::program
