// SPDX-License-Identifier: Apache-2.0
// The origin of a parameter: what its callers pass; those on the call string come first.
#include <algorithm>

#include "collector/program/origin/iterable.h"
#include "collector/program/origin/passing.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostCallers = 24;
constexpr int kMostObjects = 256;  // calls whose callee's class is looked up

/// DDP(Net()): calls of the wrapper run the forward() of the wrapped class.
bool is_wrapped_in_ddp(const Files& files, Slicer& slicer, const File& file, std::size_t type) {
  for (const File& from : files.all()) {
    for (const auto& [alias, qualified] : from.facts->imports) {
      const auto [first, last] = is_ddp(qualified) ? from.facts->calls.equal_range(alias)
                                                   : from.facts->calls.equal_range({});
      for (auto one = first; one != last; ++one) {
        const auto given = arguments_of(one->second.call);
        const Definition is =
            given.empty()
                ? Definition{}
                : slicer.class_of_value(given.front(), {.file = &from, .scope = one->second.scope});
        if (is.kind == Definition::Kind::kClass && is.file == &file && is.scope == type) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

Origin Slicer::parameter(const File& file, std::size_t scope, std::string_view name,
                         const Where& where) {
  const Scope& function = file.scopes()[scope];
  const std::size_t index = number_of(function, name);
  const bool method = is_method(file, scope);
  if (method && index == 0 && (name == "self" || name == "cls")) {
    return name == "self" ? own_items(file, function.outer, where) : of(Source::kUniform);
  }
  if (index == kNoParameter || function.parameters[index].kind == Parameter::Kind::kStar ||
      function.parameters[index].kind == Parameter::Kind::kDoubleStar) {
    return unknown(name);
  }
  // The call through which the slice entered the function.
  for (const Activation* by = where.activation; by != nullptr; by = by->caller.activation) {
    if (by->file->text == file.text && by->scope == scope && by->call) {
      const Node given = argument_for(by->call, function, index, method ? 1 : 0);
      const Node otherwise = function.parameters[index].otherwise;
      if (given || otherwise) {
        return given ? evaluate(given, by->caller) : evaluate(otherwise, {.file = &file});
      }
    }
  }
  // A class is constructed under its own name.
  const std::string& called =
      function.name == "__init__" && method ? file.scopes()[function.outer].name : function.name;
  Origin out;
  bool found = false;
  out = from_stack(file, scope, index, called, where, found);
  if (found || hooked(file, scope, index, out)) {
    return out;
  }
  out = from_callers(file, scope, index, called, where, found);
  if (!found && method && (function.name == "forward" || function.name == "__call__")) {
    out = from_calls_of_objects(file, scope, index, where, found);
  }
  return found ? out : unknown(name);
}

Origin Slicer::own_items(const File& file, std::size_t type, const Where& where) {
  const Scope& extended = file.scopes()[type];
  Origin out = of(Source::kUniform);
  const Definition itself{.kind = Definition::Kind::kClass, .file = &file, .scope = type};
  if (!extends_container(itself, files_)) {
    return out;
  }
  int calls = 0;
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->calls.equal_range(extended.name);
    for (auto one = first; one != last && calls < kMostCallers; ++one, ++calls) {
      const auto& [scope, call] = one->second;
      const Definition made =
          files_.resolve(from, scope, dotted_name(call.field(Field::kFunction)));
      if (made.kind == Definition::Kind::kClass && made.file == &file && made.scope == type) {
        out = stronger(std::move(out),
                       arguments(call, {.file = &from,
                                        .scope = scope,
                                        .statement = from.facts->index->statement_of(call),
                                        .depth = where.depth}));
      }
    }
  }
  out.number = false;
  return out;
}

/// `model(batch)` runs the forward() or __call__() of the object's class.
Origin Slicer::from_calls_of_objects(const File& file, std::size_t scope, std::size_t index,
                                     const Where& where, bool& found) {
  const Scope& function = file.scopes()[scope];
  Origin out;
  int asked = 0;
  for (const File& from : files_.all()) {
    for (const auto& [callee, in] : from.facts->calls) {
      const Node given = argument_for(in.call, function, index, 1);
      if (!given || asked++ >= kMostObjects) {
        continue;
      }
      const Definition is =
          class_of_value(in.call.field(Field::kFunction), {.file = &from, .scope = in.scope});
      const auto bases = files_.bases_of(is);
      const bool by_wrapper = is.kind == Definition::Kind::kLibrary && is_ddp(is.qualified) &&
                              is_wrapped_in_ddp(files_, *this, file, function.outer);
      if (!by_wrapper && std::none_of(bases.begin(), bases.end(), [&](const Definition& one) {
            return one.kind == Definition::Kind::kClass && one.file == &file &&
                   one.scope == function.outer;
          })) {
        continue;
      }
      found = true;
      out = stronger(std::move(out),
                     evaluate(given, {.file = &from,
                                      .scope = in.scope,
                                      .statement = from.facts->index->statement_of(in.call),
                                      .depth = where.depth}));
    }
  }
  return out;
}

/// The call that the stack shows.
Origin Slicer::from_stack(const File& file, std::size_t scope, std::size_t index,
                          std::string_view called, const Where& where, bool& found) {
  for (std::size_t i = where.depth; callers_ != nullptr && i < callers_->size(); ++i) {
    const Frame& frame = (*callers_)[i];
    if (frame.text == nullptr) {
      continue;
    }
    const File& from = files_.file_of(*frame.text);
    if (from.text != frame.text) {
      continue;
    }
    const auto [first, last] = from.facts->calls.equal_range(called);
    for (auto one = first; one != last; ++one) {
      const Node call = one->second.call;
      if (call.line() <= frame.line && frame.line <= call.last_line()) {
        Where there = where;
        there.depth = i + 1;
        Origin out = passed(file, scope, index, one->second, from, there, found);
        if (found) {
          return out;
        }
      }
    }
  }
  return {};
}

/// Every known call, including those that a library makes: `mp.spawn(main, args=(…))`.
Origin Slicer::from_callers(const File& file, std::size_t scope, std::size_t index,
                            std::string_view called, const Where& where, bool& found) {
  Origin out;
  int calls = 0;
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->calls.equal_range(called);
    for (auto one = first; one != last && calls < kMostCallers; ++one, ++calls) {
      out = stronger(std::move(out), passed(file, scope, index, one->second, from, where, found));
    }
    const auto [begin, end] = from.facts->arguments.equal_range(called);
    for (auto one = begin; one != end && calls < kMostCallers; ++one, ++calls) {
      out = stronger(std::move(out), run_by(from, one->second, index, found));
    }
  }
  return out;
}

/// The argument that a library passes to the function that this call gives it.
Origin Slicer::run_by(const File& from, const CallIn& call, std::size_t index, bool& found) {
  const std::string dotted = dotted_name(call.call.field(Field::kFunction));
  const Definition is = files_.resolve(from, call.scope, dotted);
  const RunsRow* runs =
      is.kind == Definition::Kind::kLibrary ? runs_function(is.qualified) : nullptr;
  if (runs == nullptr) {
    return {};
  }
  const std::size_t skipped = runs->rank_first ? 1 : 0;
  if (index < skipped) {
    found = true;
    Origin rank = of(Source::kRank);
    rank.number = true;
    add_step(rank, from, call.call);
    return rank;
  }
  const std::vector<Node> given = tuple_argument(call.call, "args");
  if (index - skipped >= given.size()) {
    return {};
  }
  found = true;
  return evaluate(given[index - skipped], {.file = &from, .scope = call.scope});
}

/// The argument that one call passes, or the default if it passes none.
Origin Slicer::passed(const File& file, std::size_t scope, std::size_t index, const CallIn& call,
                      const File& from, const Where& where, bool& found) {
  bool calls = false;
  const Node given = argument_passed(files_, {file, scope, index}, call, from, calls);
  const Node otherwise = file.scopes()[scope].parameters[index].otherwise;
  if (!calls || (!given && !otherwise)) {
    return {};
  }
  found = true;
  if (!given) {
    return evaluate(otherwise, {.file = &file});
  }
  const Where there{.file = &from,
                    .scope = call.scope,
                    .statement = from.facts->index->statement_of(call.call),
                    .activation = nullptr,
                    .depth = where.depth};
  return evaluate(given, there);
}

Definition Slicer::class_passed(const File& file, std::size_t scope, std::string_view name,
                                int depth) {
  const Scope& function = file.scopes()[scope];
  const std::size_t index = number_of(function, name);
  if (index == kNoParameter || function.parameters[index].kind == Parameter::Kind::kStar ||
      function.parameters[index].kind == Parameter::Kind::kDoubleStar) {
    return {};
  }
  const bool made = function.name == "__init__" && is_method(file, scope);
  const std::string& called = made ? file.scopes()[function.outer].name : function.name;
  Definition out;
  int followed = 0;
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->calls.equal_range(called);
    for (auto one = first; one != last && followed < kMostCallers; ++one, ++followed) {
      bool calls = false;
      const Node given = argument_passed(files_, {file, scope, index}, one->second, from, calls);
      if (!calls || !given) {
        continue;
      }
      Definition is = class_of_value(given, {.file = &from, .scope = one->second.scope}, depth + 1);
      const bool first_known = out.kind == Definition::Kind::kUnknown;
      if (is.kind == Definition::Kind::kUnknown ||
          (!first_known && (is.kind != out.kind || is.file != out.file || is.scope != out.scope ||
                            is.qualified != out.qualified))) {
        return {};
      }
      out = std::move(is);
    }
  }
  return out;
}

/// A library calls this method with a known argument.
bool Slicer::hooked(const File& file, std::size_t scope, std::size_t index, Origin& out) {
  const Scope& function = file.scopes()[scope];
  if (!is_method(file, scope) || index == 0) {
    return false;
  }
  for (const Definition& base : files_.bases_of(
           {.kind = Definition::Kind::kClass, .file = &file, .scope = function.outer})) {
    for (const HookRow& row : hooks()) {
      const bool same = base.kind == Definition::Kind::kLibrary && row.method == function.name &&
                        row.argument + 1 == static_cast<int>(index) &&
                        lies_in(base.qualified, row.module) && last_of(base.qualified) == row.owner;
      if (same) {
        out = of(row.source);
        return true;
      }
    }
  }
  return false;
}

}  // namespace ddpdoctor::program
