// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/origin.h"

#include <algorithm>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

/// Longer conditions do not occur in practice; parsing them would only waste time.
constexpr std::size_t kLongestOrigin = 4000;

/// The only expression of a text that has just been placed at this line.
Node expression_in(const SourceText& text) {
  const SourceIndex& index = index_of(text);
  if (index.empty()) {
    return {};
  }
  const Node statement = index.root().first_child();
  const bool alone = statement.is(NodeKind::kExpressionStatement) && !statement.next_sibling();
  return alone ? statement.first_child() : Node();
}

SourceText placed(std::string_view expression, int line) {
  SourceText out;
  // The parentheses keep an expression of several lines together.
  out[std::max(line, 1)] = "(" + std::string(expression) + ")";
  return out;
}

Where where_of(const Files& files, const Asked& asked) {
  Where out{.file = &files.file_of(*asked.text)};
  const SourceIndex& index = *out.file->facts->index;
  out.statement = index.empty() ? kNone : index.statement_at(asked.line);
  out.scope = out.statement == kNone ? 0 : index.statements()[out.statement].scope;
  return out;
}

/// The first answer of `question(slicer, decorator, where)` for a decorator of the function around
/// a line.
template <typename Question>
std::optional<DecoratorAt> first_decorator(const SourceText& text, int line, const Sources& sources,
                                           Question question) {
  const SourceIndex& index = index_of(text);
  if (index.empty()) {
    return std::nullopt;
  }
  const Scope& function = index.function_at(line);
  if (function.decorators.empty()) {
    return std::nullopt;
  }
  const Files files(text, sources);
  const Where where{.file = &files.file_of(text),
                    .scope = function.outer == kNone ? 0 : function.outer};
  for (const Node decorator : function.decorators) {
    Slicer slicer(files, nullptr);
    if (auto found = question(slicer, decorator, where)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

Origin origin_of(std::string_view expression, const Asked& asked, const Sources& sources) {
  if (expression.empty()) {
    return {};
  }
  if (expression.size() > kLongestOrigin || asked.text == nullptr) {
    return unknown({});
  }
  const SourceText text = placed(expression, asked.line);
  const Node node = expression_in(text);
  if (!node) {
    return unknown({});
  }
  const Files files(*asked.text, sources);
  Slicer slicer(files, asked.callers);
  return slicer.value(node, where_of(files, asked));
}

std::optional<DecoratorAt> cache_around(const SourceText& text, int line, const Sources& sources) {
  return first_decorator(
      text, line, sources,
      [](Slicer& slicer, Node decorator, const Where& where) -> std::optional<DecoratorAt> {
        const bool called = decorator.is(NodeKind::kCall);
        const Definition is = slicer.files().resolve(
            *where.file, where.scope,
            dotted_name(called ? decorator.field(Field::kFunction) : decorator));
        if (is.kind != Definition::Kind::kLibrary || !keeps_results(is.qualified)) {
          return std::nullopt;
        }
        return DecoratorAt{.decorator = decorator, .line = decorator.line()};
      });
}

std::optional<DecoratorAt> ranks_let_in(const SourceText& text, int line, const Sources& sources) {
  return first_decorator(
      text, line, sources,
      [](Slicer& slicer, Node decorator, const Where& where) -> std::optional<DecoratorAt> {
        const auto origin = slicer.lets_in(decorator, where);
        if (!origin) {
          return std::nullopt;
        }
        return DecoratorAt{
            .decorator = decorator, .line = decorator.line(), .by_name = origin->by_name};
      });
}

}  // namespace ddpdoctor::program
