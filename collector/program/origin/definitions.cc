// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/definitions.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::program {
namespace {

constexpr int kMostImports = 4;  // `from .a import x` where a imports x from b, …
constexpr std::size_t kMostFiles = 400;

/// "..utils.flags" → "utils.flags": a module is found by the end of its file's path.
std::string without_dots(std::string_view module) {
  const std::size_t at = module.find_first_not_of('.');
  return at == std::string_view::npos ? std::string() : std::string(module.substr(at));
}

void add_imports(Node node, FileFacts& facts) {
  const Node from = node.field(Field::kModuleName);
  const std::string module = from ? without_dots(from.text()) : std::string();
  for (const Node name : node.fields(Field::kName)) {
    const Node alias = name.field(Field::kAlias);
    const Node named = name.is(NodeKind::kAliasedImport) ? name.field(Field::kName) : name;
    const std::string path(named.text());
    if (from) {
      facts.imports.try_emplace(alias ? std::string(alias.text()) : path,
                                module.empty() ? path : module + "." + path);
    } else if (alias) {
      facts.imports.try_emplace(std::string(alias.text()), path);
    } else {
      const std::string root = path.substr(0, path.find('.'));
      facts.imports.try_emplace(root, root);
    }
  }
}

/// The last name of a callee: "get_rank" of `dist.get_rank`.
std::string_view name_of_callee(Node callee) {
  if (callee.is(NodeKind::kName)) {
    return callee.text();
  }
  return callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute).text()
                                         : std::string_view();
}

/// Modules that are usually imported under their own name.
bool is_module_name(std::string_view name) {
  constexpr auto kModules = std::to_array<std::string_view>(
      {"os", "sys", "time", "random", "math", "torch", "socket", "datetime", "glob", "shutil",
       "torch_xla", "deepspeed", "horovod"});
  return std::find(kModules.begin(), kModules.end(), name) != kModules.end();
}

/// Registers every call of the file by its callee and by its arguments.
void add_calls(Node node, FileFacts& facts) {
  if (node.is(NodeKind::kCall)) {
    const std::size_t statement = facts.index->statement_of(node);
    const std::size_t scope = statement == kNone ? 0 : facts.index->statements()[statement].scope;
    const CallIn call{.scope = scope, .call = node};
    if (const std::string_view name = name_of_callee(node.field(Field::kFunction)); !name.empty()) {
      facts.calls.emplace(std::string(name), call);
    }
    const Node given = node.field(Field::kArguments);
    for (Node argument = given.first_child(); argument; argument = argument.next_sibling()) {
      const Node value =
          argument.is(NodeKind::kKeywordArgument) ? argument.field(Field::kValue) : argument;
      if (const std::string_view name = name_of_callee(value); !name.empty()) {
        facts.arguments.emplace(std::string(name), call);
      }
    }
  }
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    add_calls(child, facts);
  }
}

}  // namespace

std::string_view last_of(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);  // npos + 1 = 0
}

std::size_t class_of(std::span<const Scope> scopes, std::size_t scope) {
  while (scope != kNone && scopes[scope].kind != ScopeKind::kClass) {
    scope = scopes[scope].outer;
  }
  return scope;
}

FileFacts::FileFacts(const SourceText& text) : index(&index_of(text)) {
  const auto scopes = index->scopes();
  of_scope.resize(scopes.size());
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    of_scope[i] = bindings_of(*index, scopes[i]);
    for (const Binding& binding : of_scope[i]) {
      const bool in_class = scopes[i].kind == ScopeKind::kClass;
      if (in_class || binding.target.find('.') != std::string::npos) {
        attributes.emplace(std::string(last_of(binding.target)),
                           BoundIn{.scope = i, .binding = binding});
      }
    }
    if (scopes[i].kind == ScopeKind::kFunction) {
      functions.emplace(scopes[i].name, i);
    } else if (scopes[i].kind == ScopeKind::kClass) {
      classes.emplace(scopes[i].name, i);
    }
  }
  for (const Statement& statement : index->statements()) {
    const NodeKind kind = statement.node.kind();
    if (kind == NodeKind::kImport || kind == NodeKind::kImportFrom) {
      add_imports(statement.node, *this);
    } else if (kind == NodeKind::kGlobal) {
      for (const Node name : statement.node.children()) {
        globals.emplace(std::string(name.text()), statement.scope);
      }
    }
  }
  if (!index->empty()) {
    add_calls(index->root(), *this);
  }
}

const FileFacts& facts_of(const SourceText& text) {
  return text.once<FileFacts>([&text] { return FileFacts(text); });
}

Files::Files(const SourceText& first, const std::map<std::string, SourceText>& all) {
  files_.push_back({.path = nullptr, .text = &first, .facts = &facts_of(first)});
  for (const auto& [path, text] : all) {
    if (&text == &first) {
      files_.front().path = &path;
    } else if (files_.size() < kMostFiles && path.ends_with(".py")) {
      files_.push_back({.path = &path, .text = &text, .facts = &facts_of(text)});
    }
  }
  for (std::size_t i = 0; i < files_.size(); ++i) {
    add_module(i);
  }
}

void Files::add_module(std::size_t file) {
  constexpr std::string_view kEnding = ".py";
  if (files_[file].path == nullptr || !files_[file].path->ends_with(kEnding)) {
    return;
  }
  std::string_view path = *files_[file].path;
  path.remove_suffix(kEnding.size());
  const auto last = [&path] { return path.substr(path.rfind('/') + 1); };  // npos + 1 = 0
  const bool package = last() == "__init__";
  modules_.emplace(last(), file);
  if (package && path.size() > last().size()) {
    path.remove_suffix(last().size() + 1);
    modules_.emplace(last(), file);
  }
}

const File& Files::file_of(const SourceText& text) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&text](const File& file) { return file.text == &text; });
  return found == files_.end() ? files_.front() : *found;
}

const File* Files::module(std::string_view dotted) const {
  std::string path(dotted);
  std::replace(path.begin(), path.end(), '.', '/');
  const File* found = nullptr;
  const auto [begin, end_of_named] =
      modules_.equal_range(std::string_view(path).substr(path.rfind('/') + 1));
  for (auto one = begin; one != end_of_named; ++one) {
    const File& file = files_[one->second];
    for (const char* ending : {".py", "/__init__.py"}) {
      const std::string end = path + ending;
      const bool fits = file.path != nullptr && !path.empty() &&
                        (*file.path == end || file.path->ends_with("/" + end));
      if (fits && (found == nullptr || file.path->size() < found->path->size())) {
        found = &file;
      }
    }
  }
  return found;
}

Definition Files::member(const File& module, std::string_view name, int depth) const {
  const FileFacts& facts = *module.facts;
  for (const auto* table : {&facts.functions, &facts.classes}) {
    const auto [begin, end] = table->equal_range(name);
    for (auto one = begin; one != end; ++one) {
      if (module.scopes()[one->second].outer == 0) {
        return {.kind = table == &facts.functions ? Definition::Kind::kFunction
                                                  : Definition::Kind::kClass,
                .file = &module,
                .scope = one->second};
      }
    }
  }
  const auto& bindings = facts.of_scope.front();
  const bool bound = std::any_of(bindings.begin(), bindings.end(), [name](const Binding& one) {
    return one.target == name && one.kind != BindingKind::kImport &&
           one.kind != BindingKind::kMethod && one.kind != BindingKind::kDefine;
  });
  if (bound || facts.globals.contains(name)) {
    return {.kind = Definition::Kind::kVariable,
            .file = &module,
            .scope = 0,
            .name = std::string(name)};
  }
  if (const auto from = facts.imports.find(name); from != facts.imports.end()) {
    return imported(from->second, depth + 1);
  }
  return {};
}

Definition Files::imported(std::string_view qualified, int depth) const {
  if (const File* file = module(qualified)) {
    return {.kind = Definition::Kind::kModule, .file = file};
  }
  const std::size_t dot = qualified.rfind('.');
  const File* file = dot == qualified.npos ? nullptr : module(qualified.substr(0, dot));
  if (file != nullptr && depth < kMostImports) {
    return member(*file, qualified.substr(dot + 1), depth);
  }
  return {.kind = Definition::Kind::kLibrary, .qualified = std::string(qualified)};
}

Definition Files::lookup(const File& file, std::size_t scope, std::string_view name) const {
  const auto scopes = file.scopes();
  for (std::size_t at = scope; at != kNone && at != 0; at = scopes[at].outer) {
    if (scopes[at].kind == ScopeKind::kClass && at != scope) {
      continue;  // methods do not see the names of their class body
    }
    const auto& parameters = scopes[at].parameters;
    const auto& bindings = file.facts->of_scope[at];
    const bool own = std::any_of(parameters.begin(), parameters.end(),
                                 [name](const Parameter& one) { return one.name == name; }) ||
                     std::any_of(bindings.begin(), bindings.end(), [name](const Binding& one) {
                       return one.target == name && one.kind != BindingKind::kMethod &&
                              one.kind != BindingKind::kDelete &&
                              one.kind != BindingKind::kDefine && one.kind != BindingKind::kImport;
                     });
    const auto [first, last] = file.facts->globals.equal_range(name);
    const bool global =
        std::any_of(first, last, [at](const auto& one) { return one.second == at; });
    if (own && !global) {
      return {.kind = Definition::Kind::kVariable,
              .file = &file,
              .scope = at,
              .name = std::string(name)};
    }
    for (const auto* table : {&file.facts->functions, &file.facts->classes}) {
      const auto [begin, end] = table->equal_range(name);
      for (auto one = begin; one != end; ++one) {
        if (scopes[one->second].outer == at) {
          return {.kind = table == &file.facts->functions ? Definition::Kind::kFunction
                                                          : Definition::Kind::kClass,
                  .file = &file,
                  .scope = one->second};
        }
      }
    }
  }
  Definition found = member(file, name);
  if (found.kind == Definition::Kind::kUnknown && is_module_name(name)) {
    // A program cannot run without this import; its line is missing from the evidence.
    return {.kind = Definition::Kind::kLibrary, .qualified = std::string(name)};
  }
  return found;
}

Definition Files::resolve(const File& file, std::size_t scope, std::string_view dotted) const {
  const std::size_t dot = dotted.find('.');
  Definition at = lookup(file, scope, dotted.substr(0, dot));
  std::string_view rest = dot == dotted.npos ? std::string_view() : dotted.substr(dot + 1);
  while (!rest.empty()) {
    const std::size_t next = rest.find('.');
    const std::string_view name = rest.substr(0, next);
    rest = next == rest.npos ? std::string_view() : rest.substr(next + 1);
    if (at.kind == Definition::Kind::kLibrary) {
      at.qualified += "." + std::string(name);
      if (const File* inside = module(at.qualified)) {
        at = {.kind = Definition::Kind::kModule, .file = inside};
      }
    } else if (at.kind == Definition::Kind::kModule) {
      at = member(*at.file, name);
    } else {
      return {};
    }
  }
  return at;
}

std::vector<Definition> Files::bases_of(const Definition& one) const {
  constexpr std::size_t kMost = 8;
  std::vector<Definition> out{one};
  for (std::size_t i = 0; i < out.size() && out.size() < kMost; ++i) {
    if (out[i].kind != Definition::Kind::kClass) {
      continue;
    }
    const File& file = *out[i].file;
    const Scope& scope = file.scopes()[out[i].scope];
    for (const Node base : scope.node.field(Field::kSuperclasses).children()) {
      Definition found = resolve(file, scope.outer, dotted_name(base));
      const bool known = std::any_of(out.begin(), out.end(), [&found](const Definition& other) {
        return other.file == found.file && other.scope == found.scope &&
               other.qualified == found.qualified;
      });
      if (found.kind != Definition::Kind::kUnknown && !known) {
        out.push_back(std::move(found));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
