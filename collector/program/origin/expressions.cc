// SPDX-License-Identifier: Apache-2.0
// The origin of an expression, computed from its parts.
#include <algorithm>
#include <array>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kDeepestExpression = 60;  // nested evaluations

bool is_zero_or_minus_one(Node node) {
  node = without_parentheses(node);
  const std::string text = node.one_line();
  return text == "-1" || text == "- 1";
}

/// `rank is None`, `local_rank != -1`, `rank >= 0`: tests only whether the job is distributed.
bool only_asks_for_presence(const std::vector<Node>& operands, std::string_view sign) {
  if (operands.size() != 2) {
    return false;
  }
  const Node right = without_parentheses(operands[1]);
  if (sign.starts_with("is")) {
    return right.is(NodeKind::kNone);
  }
  const bool zero = right.is(NodeKind::kInteger) && right.text() == "0";
  if (sign == ">=" || sign == "<") {
    return zero;
  }
  return (sign == "==" || sign == "!=" || sign == ">") && is_zero_or_minus_one(right);
}

}  // namespace

std::vector<Node> arguments_of(Node call) {
  return call.field(Field::kArguments).children();
}

Origin Slicer::value(Node node, const Where& where) {
  Origin out = truth(node, where);
  out.callables.clear();
  return out;
}

std::vector<Callable> Slicer::functions(Node node, const Where& where) {
  return evaluate(node, where).callables;
}

Origin Slicer::evaluate(Node node, const Where& where) {
  node = without_parentheses(node);
  if (!node || deep_ >= kDeepestExpression) {
    return unknown({});
  }
  ++deep_;
  Origin out = [&] {
    switch (node.kind()) {
      case NodeKind::kInteger:
      case NodeKind::kFloat:
      case NodeKind::kTrue:
      case NodeKind::kFalse:
      case NodeKind::kNone:
      case NodeKind::kEllipsis:
        return of(Source::kUniform);
      case NodeKind::kLambda:
        return lambda(node, where);
      case NodeKind::kName:
        return name(node, where);
      case NodeKind::kAttribute:
        return attribute(node, where);
      case NodeKind::kSubscript:
        return subscript(node, where);
      case NodeKind::kCall:
        return call(node, where);
      case NodeKind::kComparison:
        return comparison(node, where);
      case NodeKind::kBinary:
        return arithmetic(node, where);
      case NodeKind::kConditional:
        return conditional(node, where);
      case NodeKind::kNamed:
        return evaluate(node.field(Field::kValue), where);
      case NodeKind::kListComprehension:
      case NodeKind::kSetComprehension:
      case NodeKind::kDictionaryComprehension:
      case NodeKind::kGenerator:
        return comprehension(node, where);
      case NodeKind::kYield:
      case NodeKind::kError:
        return unknown({});
      case NodeKind::kKeywordArgument:
        return evaluate(node.field(Field::kValue), where);
      case NodeKind::kBoolean:
        return operands(node, where);
      case NodeKind::kNot: {
        Origin inner = truth(node.field(Field::kArgument), where);
        inner.number = false;
        inner.number_compared = false;
        return inner;
      }
      default:
        return joined(node.children(), where);
    }
  }();
  --deep_;
  return out;
}

Origin Slicer::truth(Node node, const Where& where) {
  std::vector<Callee> asked;
  for (const Definition& made : classes_of_value(node, where)) {
    auto found = methods_of(made, "__bool__", files_);
    found = found.empty() ? methods_of(made, "__len__", files_) : found;
    asked.insert(asked.end(), found.begin(), found.end());
  }
  if (asked.empty()) {
    return evaluate(node, where);
  }
  Origin out = of(Source::kUniform);
  for (const Callee& one : asked) {
    out = stronger(std::move(out), entered(*one.file, one.scope, {}, where));
  }
  if (out.source != Source::kUniform) {
    add_step(out, *where.file, node);
  }
  return out;
}

/// `a and not b`: each operand decides by its truth.
Origin Slicer::operands(Node node, const Where& where) {
  Origin out = of(Source::kUniform);
  for (const Node operand : node.children()) {
    out = stronger(std::move(out), truth(operand, where));
    if (out.source == Source::kRank && !out.by_name) {
      break;
    }
  }
  out.number = false;
  out.number_compared = false;
  return out;
}

Origin Slicer::joined(const std::vector<Node>& nodes, const Where& where) {
  Origin out = of(Source::kUniform);
  for (const Node node : nodes) {
    out = stronger(std::move(out), evaluate(node, where));
    if (out.source == Source::kRank && !out.by_name) {
      break;
    }
  }
  if (nodes.size() > 1) {
    out.number = false;
    out.number_compared = false;
  }
  return out;
}

Origin Slicer::comparison(Node node, const Where& where) {
  const std::vector<Node> operands = node.children();
  const std::vector<Node> signs = node.fields(Field::kOperators);
  const std::string_view sign = signs.empty() ? std::string_view() : signs.front().text();
  if (operands.size() == 2 && (sign == "in" || sign.starts_with("not")) &&
      !string_text(operands[0]).empty()) {
    const Definition of_right = files_.resolve(*where.file, where.scope, dotted_name(operands[1]));
    if (of_right.qualified == "os.environ") {
      Origin out = of(Source::kEnvironment);  // only whether it is set
      out.variables.emplace_back(string_text(operands[0]));
      return out;
    }
  }
  Origin out = joined(operands, where);
  const bool chosen = is_choice(out);  // `self.saver is not None`: made on some ranks only
  out.object = false;
  out.callables.clear();
  out.number_compared = !operands.empty() && evaluate(operands.front(), where).number;
  out.number = false;
  // A rank's clock compared with a value computed from its rank still counts as the clock.
  for (const Node operand : out.source == Source::kRank ? operands : std::vector<Node>()) {
    if (Origin own = evaluate(operand, where); is_own(own.source)) {
      out = std::move(own);
      out.number_compared = false;
      break;
    }
  }
  const bool presence = only_asks_for_presence(operands, sign);
  const auto decides = presence && sign.starts_with("is") ? std::move(out.none) : nullptr;
  out.none = nullptr;
  const bool is_always_something =
      out.source == Source::kRank || out.source == Source::kRandom || out.source == Source::kClock;
  // That an exception was caught is asked by the callers, who know the clause.
  const bool alike =
      decides && out.source == decides->source && decides->source != Source::kException;
  const bool own = decides && is_own(decides->source) && (out.source <= Source::kData || alike);
  if (decides && (is_always_something || own) && !chosen) {
    return *decides;  // the value differs, but whether it is None is decided elsewhere
  }
  if (out.source == Source::kRank && presence && !chosen) {
    out.source = Source::kUniform;
  }
  // The same test asks a cache or a queue whether it contains anything.
  const bool none = presence && sign.starts_with("is") && out.source != Source::kQueue &&
                    out.source != Source::kCache;
  const bool limit = out.source == Source::kUnknown && is_counter(operands.front(), where);
  out.like_an_option = out.like_an_option || none || limit;
  return out;
}

/// `loss + 0.3 * rank` is data; `rank % 4` still depends on the rank. The divisor of a counter is
/// an option of the run, wherever it is set.
Origin Slicer::arithmetic(Node node, const Where& where) {
  Origin left = evaluate(node.field(Field::kLeft), where);
  const std::string_view sign = node.field(Field::kOperator).text();
  const Node divisor = without_parentheses(node.field(Field::kRight));
  const bool divides = sign == "%" || sign == "//";
  Origin right = evaluate(divisor, where);
  if (sign == "%" && left.source == Source::kUniform && right.source == Source::kUnknown &&
      !dotted_name(divisor).empty()) {
    right = of(Source::kUniform);
  }
  const bool every_nth = sign == "%" && left.source == Source::kUnknown &&
                         !dotted_name(node.field(Field::kLeft)).empty() &&
                         right.source <= Source::kUnknown;
  const auto differs = [](const Origin& one) { return one.source >= Source::kUnknown; };
  if (left.source == Source::kRank && differs(right) && right.source != Source::kRank) {
    right.number = false;
    return divides || right.source == Source::kUnknown ? left : right;
  }
  if (right.source == Source::kRank && differs(left) && left.source != Source::kRank) {
    return left;
  }
  Origin out = stronger(std::move(left), std::move(right));
  out.number = false;
  out.object = false;
  out.none = nullptr;
  out.like_an_option = every_nth;
  return out;
}

/// The variable of a loop over a range, even if little of the name is known: every rank counts the
/// same.
bool Slicer::is_counter(Node node, const Where& where) {
  node = without_parentheses(node);
  const Definition is = node.is(NodeKind::kName)
                            ? files_.lookup(*where.file, where.scope, node.text())
                            : Definition{};
  if (is.kind != Definition::Kind::kVariable) {
    return false;
  }
  const auto& bindings = is.file->facts->of_scope[is.scope];
  return std::any_of(bindings.begin(), bindings.end(), [&](const Binding& one) {
    const Node over = without_parentheses(one.value);
    const std::string_view callee =
        over.is(NodeKind::kCall) ? over.field(Field::kFunction).text() : std::string_view();
    return one.target == is.name && one.kind == BindingKind::kFor &&
           (callee == "range" || callee == "enumerate") &&
           evaluate(node, where).source == Source::kUniform;
  });
}

/// `None if test else value`: the test decides whether it is None.
bool chooses_none(const std::vector<Node>& parts) {
  return without_parentheses(parts[0]).is(NodeKind::kNone) !=
         without_parentheses(parts[2]).is(NodeKind::kNone);
}

Origin Slicer::conditional(Node node, const Where& where) {
  const std::vector<Node> parts = node.children();  // then, the test, else
  if (parts.size() != 3) {
    return joined(parts, where);
  }
  Origin test = truth(parts[1], where);
  if (test.source != Source::kUniform) {
    add_choice(test, *where.file, parts[1]);
  }
  if (test.source == Source::kRank && !(is_flag(parts[0]) && is_flag(parts[2]))) {
    Origin values = joined({parts[0], parts[2]}, where);
    if (is_own(values.source)) {
      if (chooses_none(parts)) {
        test.source = Source::kData;  // on that rank, the input is missing
        values.none = std::make_shared<const Origin>(std::move(test));
      }
      return values;
    }
    test.number = false;
    const auto none = chooses_none(parts) ? std::make_shared<const Origin>(test) : nullptr;
    Origin out = stronger(std::move(test), std::move(values));
    out.none = none ? none : out.none;
    return out;
  }
  Origin values = joined({parts[0], parts[2]}, where);
  if (chooses_none(parts) && is_own(test.source)) {
    values.none = std::make_shared<const Origin>(test);
  }
  return stronger(std::move(values), std::move(test));
}

Origin Slicer::subscript(Node node, const Where& where) {
  const Node object = node.field(Field::kValue);
  const std::vector<Node> keys = node.fields(Field::kSubscript);
  const Definition is = files_.resolve(*where.file, where.scope, dotted_name(object));
  const bool environ = is.qualified == "os.environ";
  const bool by_name = is.kind == Definition::Kind::kUnknown && keys.size() == 1 &&
                       is_rank_variable(string_text(keys.front()));
  if ((environ || by_name) && keys.size() == 1) {
    Origin out = environment(keys.front(), {}, where);
    out.by_name = by_name;
    return out;
  }
  Origin out = evaluate(object, where);
  for (const Node key : keys) {
    Origin of_key = evaluate(key, where);
    if (of_key.source == Source::kUniform) {
      continue;
    }
    if (of_key.source == Source::kRank && key.is(NodeKind::kSlice)) {
      of_key.source = Source::kData;  // documents[rank::world]: the rank's share
    }
    add_choice(of_key, *where.file, key);
    out = is_own(out.source) ? std::move(out) : stronger(std::move(out), std::move(of_key));
    out.number = false;
  }
  return out;
}

/// The origin of the iterable and of the filters; `name` resolves the comprehension's own names.
Origin Slicer::comprehension(Node node, const Where& where) {
  Origin out = evaluate(node.field(Field::kBody), where);
  for (const Node part : node.children()) {
    if (part.is(NodeKind::kForIn)) {
      out = stronger(std::move(out), evaluate(part.field(Field::kRight), where));
    } else if (part.is(NodeKind::kIfClause)) {
      out = stronger(std::move(out), joined(part.children(), where));
    }
  }
  out.number = false;
  return out;
}

Origin Slicer::environment(Node key, Node call, const Where& where) {
  const std::string_view name = string_text(key);
  Origin out = of(is_rank_variable(name) ? Source::kRank : Source::kEnvironment);
  out.number = out.source == Source::kRank;
  if (name.empty()) {
    return stronger(std::move(out), evaluate(key, where));
  }
  out.variables.emplace_back(name);
  add_step(out, *where.file, call ? call : key);
  return out;
}

bool Slicer::enter(const Key& key) {
  constexpr int kMost = 600;
  return ++steps_ <= kMost && open_.insert(key).second;
}

void Slicer::leave(const Key& key) {
  open_.erase(key);
}

}  // namespace ddpdoctor::program
