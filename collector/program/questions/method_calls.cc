// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/method_calls.h"

#include <algorithm>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/objects.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepest = 2;  // functions of the user that are followed below a call

bool some_row_has(std::string_view method, MethodDoes effect) {
  return std::any_of(methods().begin(), methods().end(),
                     [&](const MethodRow& row) { return row.name == method && does(row, effect); });
}

class MethodReader {
 public:
  MethodReader(const SourceText& text, const Sources& sources, SeenObjects seen = {})
      : files_(text, sources), objects_(files_), file_(files_.file_of(text)), seen_(seen) {}

  [[nodiscard]] const File& file() const {
    return file_;
  }
  void add(const CallIn& one) {
    add(file_, one, one.call, 0);
  }
  std::vector<MethodCall> take() {
    std::stable_sort(calls_.begin(), calls_.end(), [](const MethodCall& a, const MethodCall& b) {
      return a.call.begin() < b.call.begin();
    });
    return std::move(calls_);
  }

 private:
  /// False if the call may do something that is not known.
  bool add(const File& file, const CallIn& one, Node outer, int depth) {
    MethodCall call{.call = outer, .inner = depth > 0};
    const std::size_t at = calls_.size();
    const Node callee = without_parentheses(one.call.field(Field::kFunction));
    const std::string dotted = dotted_name(callee);
    const Definition is = dotted.empty() ? Definition{} : files_.resolve(file, one.scope, dotted);
    if (callee.is(NodeKind::kAttribute)) {
      call.object = callee.field(Field::kObject).one_line();
      call.method = callee.field(Field::kAttribute).text();
    } else {
      call.method = callee.text();
    }
    if (depth >= kDeepest && !is_listed(call.method)) {
      return true;
    }
    if (is.kind == Definition::Kind::kFunction) {
      call.known = body({.file = is.file, .scope = is.scope}, outer, depth);
    } else if (is.kind == Definition::Kind::kClass) {
      call.known = true;
    } else if (is.kind == Definition::Kind::kLibrary) {
      of_library(is.qualified, call);
    } else if (depth == 0 && was_seen(one.call.line(), call)) {
      call.made = objects_.of(callee.field(Field::kObject), file, one.scope).made;
    } else if (callee.is(NodeKind::kAttribute)) {
      of_object(objects_.of(callee.field(Field::kObject), file, one.scope), call, depth);
    } else if (callee.is(NodeKind::kName) && is.kind == Definition::Kind::kUnknown) {
      of_library("builtins." + dotted, call);
    }
    const bool known = call.known || !is_listed(call.method);
    if (depth == 0 || (call.known && call.row != nullptr)) {
      calls_.insert(calls_.begin() + static_cast<std::ptrdiff_t>(at), std::move(call));
    }
    return known;
  }

  /// The object was read from memory, and is of a class of the library.
  bool was_seen(int line, MethodCall& call) const {
    const auto found = std::find_if(seen_.begin(), seen_.end(), [&](const SeenObject& one) {
      return file_.path != nullptr && one.file == *file_.path && one.line == line &&
             one.expression == call.object;
    });
    const ClassRow* row = found == seen_.end() ? nullptr : class_made_by(found->qualified);
    if (row == nullptr || call.object.empty()) {
      return false;
    }
    call.owner = row->owner;
    call.row = method_of_class(row->owner, call.method);
    call.known = true;
    call.number = found->number;
    return true;
  }

  /// A method of one of the library's own objects, or a function: `os.environ.get`, `os.stat`.
  static void of_library(const std::string& qualified, MethodCall& call) {
    const Object object = Objects::in_library(qualified);
    call.owner = object.owner;
    call.row = object.owner.empty() ? effect_of_function(qualified)
                                    : method_of_class(object.owner, call.method);
    call.known =
        !object.owner.empty() || call.row != nullptr || class_made_by(qualified) != nullptr;
  }

  void of_object(const Object& object, MethodCall& call, int depth) {
    call.made = object.made;
    if (object.kind == Object::Kind::kLibrary && !object.owner.empty()) {
      call.owner = object.owner;
      call.known = true;
      call.row = method_of_class(object.owner, call.method);
    } else if (object.kind == Object::Kind::kUser) {
      of_user(object.user, call, depth);
    }
  }

  /// A method of the user's class, or of a library class from which it is derived.
  void of_user(const Definition& user, MethodCall& call, int depth) {
    std::vector<Callee> run = methods_of(user, call.method, files_);
    for (const Callee& one : overrides_of(user, call.method, files_)) {
      if (std::find(run.begin(), run.end(), one) == run.end()) {
        run.push_back(one);
      }
    }
    call.known = !run.empty();
    for (const Callee& one : run) {
      call.known = body(one, call.call, depth) && call.known;
    }
    for (const Definition& base : files_.bases_of(user)) {
      const ClassRow* row = run.empty() && base.kind == Definition::Kind::kLibrary
                                ? class_made_by(base.qualified)
                                : nullptr;
      if (row != nullptr) {
        call.owner = row->owner;
        call.known = true;
        call.row = method_of_class(row->owner, call.method);
      }
    }
  }

  /// Adds what a function of the user does. False if not all of that is known.
  bool body(const Callee& callee, Node outer, int depth) {
    const Scope& function = callee.function();
    if (depth >= kDeepest) {
      return false;
    }
    bool known = true;
    for (int line = function.header_line; line <= function.last_line; ++line) {
      known = known && callee.file->text->contains(line);
    }
    for (const auto& [name, one] : callee.file->facts->calls) {
      if (one.scope == callee.scope) {
        known = add(*callee.file, one, outer, depth + 1) && known;
      }
    }
    return known;
  }

  Files files_;
  Objects objects_;
  const File& file_;
  SeenObjects seen_;
  std::vector<MethodCall> calls_;
};

}  // namespace

std::vector<MethodCall> calls_on(const SourceText& text, const Sources& sources, int first,
                                 int last, SeenObjects seen) {
  MethodReader reader(text, sources, seen);
  for (const auto& [name, one] : reader.file().facts->calls) {
    if (one.call.line() >= first && one.call.line() <= last) {
      reader.add(one);
    }
  }
  return reader.take();
}

std::vector<MethodCall> calls_at(const SourceText& text, const Sources& sources, int line,
                                 SeenObjects seen) {
  const SourceIndex& index = index_of(text);
  const std::size_t at = index.empty() ? kNone : index.statement_at(line);
  if (at == kNone) {
    return {};
  }
  MethodReader reader(text, sources, seen);
  for (const auto& [name, one] : reader.file().facts->calls) {
    if (index.statement_of(one.call) == at) {
      reader.add(one);
    }
  }
  return reader.take();
}

std::vector<MethodCall> calls_that(const SourceText& text, const Sources& sources,
                                   MethodDoes effect) {
  MethodReader reader(text, sources);
  for (const auto& [name, one] : reader.file().facts->calls) {
    if (some_row_has(name, effect)) {
      reader.add(one);
    }
  }
  std::vector<MethodCall> out = reader.take();
  std::erase_if(out, [effect](const MethodCall& one) { return told(one, effect) == Told::kNo; });
  return out;
}

Told told(const MethodCall& call, MethodDoes effect) {
  if (call.known) {
    return call.row != nullptr && does(*call.row, effect) ? Told::kYes : Told::kNo;
  }
  return some_row_has(call.method, effect) ? Told::kUnknown : Told::kNo;
}

Told told(const std::vector<MethodCall>& calls, MethodDoes effect) {
  Told out = Told::kNo;
  for (const MethodCall& call : calls) {
    out = std::max(out, told(call, effect));
  }
  return out;
}

Told ends(const MethodCall& call, std::string_view owner, std::string_view waiting) {
  if (call.known) {
    return call.owner == owner && call.row != nullptr && ends_wait(*call.row, waiting) ? Told::kYes
                                                                                       : Told::kNo;
  }
  const MethodRow* row = call.object.empty() ? nullptr : method_of_class(owner, call.method);
  return row != nullptr && ends_wait(*row, waiting) ? Told::kUnknown : Told::kNo;
}

}  // namespace ddpdoctor::program
