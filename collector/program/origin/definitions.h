// SPDX-License-Identifier: Apache-2.0
// The definition of a name: in the function, an enclosing function, the module, an import, another
// known file, or a library.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/program/source_text.h"
#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

/// A binding and its scope.
struct BoundIn {
  std::size_t scope = 0;
  Binding binding;
};

/// A call and its scope.
struct CallIn {
  std::size_t scope = 0;
  Node call;
};

/// The bindings, imports and calls of one file, collected once per text.
struct FileFacts {
  explicit FileFacts(const SourceText& text);

  const SourceIndex* index = nullptr;
  std::vector<std::vector<Binding>> of_scope;                   // by scope
  std::map<std::string, std::string, std::less<>> imports;      // local name → "torch.distributed"
  std::multimap<std::string, BoundIn, std::less<>> attributes;  // last name of "self.stop"
  std::multimap<std::string, CallIn, std::less<>> calls;        // last name of the callee
  // By a name that is passed to the call.
  std::multimap<std::string, CallIn, std::less<>> arguments;
  std::multimap<std::string, std::size_t, std::less<>> functions;  // last name → scope
  std::multimap<std::string, std::size_t, std::less<>> classes;
  // Scopes that declare the name global.
  std::multimap<std::string, std::size_t, std::less<>> globals;
};

const FileFacts& facts_of(const SourceText& text);

/// One of the known files.
struct File {
  const std::string* path = nullptr;  // null = unknown
  const SourceText* text = nullptr;
  const FileFacts* facts = nullptr;

  [[nodiscard]] std::span<const Scope> scopes() const {
    return facts->index->scopes();
  }
};

/// The definition that a name or dotted path refers to.
struct Definition {
  enum class Kind : std::uint8_t { kUnknown, kLibrary, kModule, kFunction, kClass, kVariable };
  Kind kind = Kind::kUnknown;
  std::string qualified{};     // for a library: "torch.distributed.get_rank"
  const File* file = nullptr;  // for a definition of the user
  // For a function or class, its own scope; for a variable, the scope that binds it.
  std::size_t scope = 0;
  std::string name{};  // for a variable
};

/// The known files.
class Files {
 public:
  /// `first` is searched first; it may be one of `all`.
  Files(const SourceText& first, const std::map<std::string, SourceText>& all);

  [[nodiscard]] const std::vector<File>& all() const {
    return files_;
  }
  [[nodiscard]] const File& file_of(const SourceText& text) const;

  /// The definition of a name as a scope of a file sees it.
  [[nodiscard]] Definition lookup(const File& file, std::size_t scope, std::string_view name) const;
  /// "dist.get_rank", "utils.flags.verbose".
  [[nodiscard]] Definition resolve(const File& file, std::size_t scope,
                                   std::string_view dotted) const;
  /// The definition of a name in a user's module; follows chains of imports.
  [[nodiscard]] Definition member(const File& module, std::string_view name, int depth = 0) const;
  /// The file of "package.utils"; nullptr if it is unknown.
  [[nodiscard]] const File* module(std::string_view dotted) const;
  /// The base classes of a class, up to the first one that no known file defines (as a qualified
  /// name).
  [[nodiscard]] std::vector<Definition> bases_of(const Definition& one) const;

 private:
  [[nodiscard]] Definition imported(std::string_view qualified, int depth) const;
  void add_module(std::size_t file);

  std::vector<File> files_;
  // By the last name of the module: "flags" of "utils/flags.py" and of "flags/__init__.py".
  std::multimap<std::string_view, std::size_t> modules_;
};

/// The innermost class around a scope, including the scope itself; kNone if there is none.
std::size_t class_of(std::span<const Scope> scopes, std::size_t scope);

/// The last name of "a.b.c".
std::string_view last_of(std::string_view dotted);

}  // namespace ddpdoctor::program
