// SPDX-License-Identifier: Apache-2.0
// Calls. A callee is identified by its function object in memory: `dist.get_rank`, `get_rank` and
// `my_rank` are the same function if they refer to one object.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"
#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;
namespace layout = stacks::value_layout;

constexpr int kMostNested = 4;
using stacks::kTypeSubclass;

/// Functions that read the clock, a random number or the state of a file: their result cannot be
/// reproduced.
std::string_view passing_source(std::string_view module, std::string_view name) {
  struct Source {
    std::string_view module;
    std::string_view name;  // empty: all functions of the module
    std::string_view what;
  };
  constexpr auto kSources = std::to_array<Source>({
      {.module = "time", .name = "", .what = "the clock"},
      {.module = "random", .name = "", .what = "a random number"},
      {.module = "genericpath", .name = "", .what = "the file system"},
      {.module = "posixpath", .name = "", .what = "the file system"},
      {.module = "pathlib", .name = "", .what = "the file system"},
      {.module = "numpy.random", .name = "", .what = "a random number"},
  });
  const auto found = std::find_if(kSources.begin(), kSources.end(), [&](const Source& source) {
    return (module == source.module || module.starts_with(std::string(source.module) + ".")) &&
           (source.name.empty() || source.name == name);
  });
  return found == kSources.end() ? std::string_view() : found->what;
}

/// "Trainer.step" is named "step".
bool is_named(std::string_view qualname, std::string_view name) {
  return qualname.substr(qualname.rfind('.') + 1) == name;
}

}  // namespace

std::string call_reason(std::string_view module, std::string_view name) {
  const std::string_view source = passing_source(module, name);
  return source.empty() ? fmt::format("it calls {}", name)
                        : fmt::format("it calls {}, which reads {}", name, source);
}

std::string Evaluator::name_of_function(RemoteAddress function) {
  const auto parts = stacks::function_parts(objects_, function);
  return parts ? parts->qualname : std::string("a function");
}

std::optional<Value> Evaluator::known_function(std::string_view module, std::string_view name,
                                               const std::vector<Value>& arguments) {
  const bool method = name.find('.') != std::string_view::npos;
  const bool whole_world =
      arguments.empty() || arguments[0].kind == Kind::kNone || (method && arguments.size() == 1);
  if (auto known = known_answer(facts_, module, name, whole_world)) {
    return known;
  }
  if (auto answer = file_answer(module, name, arguments)) {
    return answer;
  }
  const bool gets = (module == "_collections_abc" || module == "collections.abc") &&
                    name == "Mapping.get" && !arguments.empty() &&
                    arguments[0].kind == Kind::kObject && is_environment(arguments[0].address);
  const bool getenv = module == "os" && name == "getenv";
  if (gets || getenv) {
    const std::size_t first = gets ? 1 : 0;
    RemoteAddress environ = gets ? arguments[0].address : 0;
    if (getenv) {
      const auto os = objects_.module("os");
      environ = os ? objects_.item(*os, "environ").value_or(0) : 0;
    }
    if (environ == 0 || arguments.size() <= first) {
      return std::nullopt;
    }
    Value found = environment_variable(environ, arguments[first]);
    const bool otherwise = found.kind == Kind::kNone && arguments.size() > first + 1;
    return otherwise ? arguments[first + 1] : found;
  }
  return std::nullopt;
}

/// A wrapper of a library around a user's function counts as that function:
/// contextlib.contextmanager, torch.no_grad. A user's own wrapper is entered itself.
std::optional<stacks::FunctionParts> Evaluator::user_function(RemoteAddress function) {
  constexpr int kMostWrappers = 4;
  std::optional<stacks::FunctionParts> parts = stacks::function_parts(objects_, function);
  for (int i = 0; parts && i < kMostWrappers && !model::is_user_file(file_of(*parts)); ++i) {
    const std::optional<RemoteAddress> wrapped = objects_.attribute(function, "__wrapped__");
    if (!wrapped) {
      return std::nullopt;
    }
    function = *wrapped;
    parts = stacks::function_parts(objects_, function);
  }
  return parts;
}

/// What calling a torch.nn.Module runs: forward() of it, or of the one that DDP, FSDP and the like
/// are around: a module of torch's own with one child hands on what it is given.
std::optional<Value> Evaluator::forward_of(const Value& module) {
  constexpr int kMostWrappers = 4;
  RemoteAddress at = module.kind == Kind::kObject ? module.address : 0;
  for (int i = 0; at != 0 && i < kMostWrappers; ++i) {
    const RemoteAddress type = objects_.type_of(at);
    if (!attributes_.derives_from(type, "torch.nn.modules.module", "Module")) {
      return std::nullopt;
    }
    if (!attributes_.module_of(type).starts_with("torch.")) {
      const auto forward = attributes_.in_class(type, "forward");
      return forward && objects_.type_name(*forward) == "function"
                 ? std::optional(
                       Value{.kind = Kind::kMethod, .address = *forward, .items = {load(at)}})
                 : std::nullopt;
    }
    const auto children = objects_.attribute(at, "_modules");
    const auto all = children ? objects_.items(*children, 2)
                              : std::vector<std::pair<RemoteAddress, RemoteAddress>>();
    at = all.size() == 1 ? all[0].second : 0;
  }
  return std::nullopt;
}

std::string Evaluator::file_of(const stacks::FunctionParts& parts) {
  const stacks::PythonLayout& layout = objects_.layout();
  const RemoteAddress name =
      stacks::pointer(objects_.memory(), stacks::at(parts.code, layout.code_filename));
  return objects_.string(name).value_or("");
}

Entry Evaluator::entry_of(const stacks::FunctionParts& parts, std::vector<Value> arguments,
                          const std::vector<std::string>& keywords) {
  stacks::RemoteMemory& memory = objects_.memory();
  const stacks::PythonLayout& layout = objects_.layout();
  Entry entry{
      .file = file_of(parts),
      .first_line =
          memory.get<std::int32_t>(stacks::at(parts.code, layout.code_first_line)).value_or(0),
      .name = parts.code_name,
      .qualname = is_named(parts.qualname, parts.code_name) ? parts.qualname : parts.code_name,
      .scope = stacks::Scope(objects_, parts, {}),
      .bound = {},
      .parts = {}};
  const auto parameters = entry.scope.parameters();
  std::size_t place = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool keyword = i < keywords.size() && !keywords[i].empty();
    if (keyword || place < parameters.size()) {  // further arguments go into its *arguments
      entry.bound[keyword ? keywords[i] : parameters[place++]] = std::move(arguments[i]);
    }
  }
  return entry;
}

std::optional<Entry> Evaluator::enter(
    const Expression& call, Names& names,
    const std::function<Value(std::size_t part, Value value)>& argument) {
  if (call.kind != Expression::Kind::kCall) {
    return std::nullopt;
  }
  Value callee = evaluate(call.parts[0], names);
  if (auto forward = forward_of(callee)) {
    callee = std::move(*forward);
  }
  std::vector<Value> arguments;
  if (callee.kind == Kind::kMethod) {
    arguments.push_back(argument(0, callee.items[0]));
  }
  const auto parts = callee.kind == Kind::kMethod || callee.kind == Kind::kObject
                         ? user_function(callee.address)
                         : std::nullopt;
  if (!parts) {
    return std::nullopt;
  }
  std::vector<std::string> words(arguments.size());
  // The part of the call that passed each argument.
  std::vector<std::size_t> from(arguments.size(), 0);
  bool unpacked = false;  // arguments after a * have no known position
  for (std::size_t i = 1; i < call.parts.size(); ++i) {
    const std::string word = call.words.size() > i - 1 ? call.words[i - 1] : std::string();
    unpacked = unpacked || word == "*";
    if (word != "*" && (!unpacked || !word.empty())) {
      arguments.push_back(argument(i, evaluate(call.parts[i], names)));
      words.push_back(word);
      from.push_back(i);
    }
  }
  auto entry = entry_of(*parts, std::move(arguments), words);
  const auto parameters = entry.scope.parameters();
  std::size_t place = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].empty() || place < parameters.size()) {
      entry.parts[words[i].empty() ? parameters[place++] : words[i]] = from[i];
    }
  }
  return entry;
}

Value Evaluator::call_function(RemoteAddress function, std::vector<Value> arguments,
                               const std::vector<std::string>& keywords, int depth) {
  const auto parts = stacks::function_parts(objects_, function);
  if (!parts) {
    return Value::unknown("it calls a function that cannot be read");
  }
  if (auto known = known_function(parts->module, parts->qualname, arguments)) {
    return *known;
  }
  Entry entry = entry_of(*parts, std::move(arguments), keywords);
  const Expression* body = bodies_ && passing_source(parts->module, parts->qualname).empty()
                               ? bodies_(entry.file, entry.first_line, entry.name)
                               : nullptr;
  if (body == nullptr || entered_ >= kMostNested) {
    return Value::unknown(call_reason(parts->module, parts->qualname));
  }
  Names names{.scope = &entry.scope, .bound = std::move(entry.bound)};
  ++entered_;
  Value result = node(*body, names, depth + 1);
  --entered_;
  return result;
}

Value Evaluator::call(const Expression& expression, Names& names, int depth) {
  const Value callee = node(expression.parts[0], names, depth + 1);
  if (!callee.known()) {
    return callee;
  }
  std::vector<Value> arguments;
  bool keywords = false;
  if (callee.kind == Kind::kMethod) {
    arguments.push_back(callee.items[0]);
  }
  std::vector<std::string> words(arguments.size());
  for (std::size_t i = 1; i < expression.parts.size(); ++i) {
    const std::string& word = expression.words.size() > i - 1 ? expression.words[i - 1] : "";
    arguments.push_back(node(expression.parts[i], names, depth + 1));
    words.push_back(word);
    keywords = keywords || !word.empty();
    // If an argument is unknown, the function's result is unknown too, except for getattr and
    // similar functions.
    if (!arguments.back().known()) {
      return arguments.back();
    }
  }
  if (callee.kind == Kind::kMethod) {
    return call_function(callee.address, std::move(arguments), words, depth);
  }
  if (callee.kind == Kind::kBuiltinMethod) {
    return keywords ? Value::unknown("it calls " + callee.text)
                    : call_method_of_builtin(callee.text, callee.items[0], arguments);
  }
  const std::string type =
      callee.kind == Kind::kObject ? objects_.type_name(callee.address) : std::string();
  if (type == "function") {
    return call_function(callee.address, std::move(arguments), words, depth);
  }
  if (type == "method") {
    stacks::RemoteMemory& memory = objects_.memory();
    const auto field = [&](std::int64_t offset) {
      return stacks::pointer(memory, stacks::at(callee.address, offset));
    };
    arguments.insert(arguments.begin(), load(field(layout::kMethodSelf)));
    words.insert(words.begin(), std::string());
    return call_function(field(layout::kFirstField), std::move(arguments), words, depth);
  }
  if (type == "functools._lru_cache_wrapper" && !keywords) {
    return call_cached(callee.address, std::move(arguments), depth);
  }
  if (type == "builtin_function_or_method" && !keywords) {
    return call_builtin(callee.address, arguments, depth);
  }
  const bool is_class = !type.empty() && (objects_.type_flags(callee.address) & kTypeSubclass) != 0;
  if (is_class) {
    auto made = make(callee.address, arguments, words, depth);
    if (made || !keywords) {
      return made ? std::move(*made) : call_class(callee.address, arguments);
    }
  }
  return Value::unknown("it calls " + base::elide(expression.parts[0].source, 40));
}

}  // namespace ddpdoctor::values
