// SPDX-License-Identifier: Apache-2.0
// Who defines a name: the function, another function around it, the module, an import, another file
// at hand, a library.
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

/// A binding with the scope it stands in.
struct BoundIn {
  std::size_t scope = 0;
  Binding binding;
};

/// A call with the scope it stands in.
struct CallIn {
  std::size_t scope = 0;
  Node call;
};

/// What one file binds, imports and calls; made once for a text.
struct FileFacts {
  explicit FileFacts(const SourceText& text);

  const SourceIndex* index = nullptr;
  std::vector<std::vector<Binding>> of_scope;                   // by scope
  std::map<std::string, std::string, std::less<>> imports;      // local name → "torch.distributed"
  std::multimap<std::string, BoundIn, std::less<>> attributes;  // last name of "self.stop"
  std::multimap<std::string, CallIn, std::less<>> calls;        // last name of the callee
  std::multimap<std::string, CallIn, std::less<>> arguments;    // a name that is passed to a call
  std::multimap<std::string, std::size_t, std::less<>> functions;  // last name → scope
  std::multimap<std::string, std::size_t, std::less<>> classes;
  std::multimap<std::string, std::size_t, std::less<>> globals;  // scopes that declare it global
};

const FileFacts& facts_of(const SourceText& text);

/// One file of those at hand.
struct File {
  const std::string* path = nullptr;  // absent: not known
  const SourceText* text = nullptr;
  const FileFacts* facts = nullptr;

  [[nodiscard]] std::span<const Scope> scopes() const {
    return facts->index->scopes();
  }
};

/// What a name or dotted path stands for.
struct Definition {
  enum class Kind : std::uint8_t { kUnknown, kLibrary, kModule, kFunction, kClass, kVariable };
  Kind kind = Kind::kUnknown;
  std::string qualified{};     // of a library: "torch.distributed.get_rank"
  const File* file = nullptr;  // of what the user defines
  std::size_t scope = 0;       // of a function or class: its own; of a variable: where it is bound
  std::string name{};          // of a variable
};

/// The files at hand.
class Files {
 public:
  /// `first` is searched first; it may be one of `all`.
  Files(const SourceText& first, const std::map<std::string, SourceText>& all);

  [[nodiscard]] const std::vector<File>& all() const {
    return files_;
  }
  [[nodiscard]] const File& file_of(const SourceText& text) const;

  /// A name as a scope of a file sees it.
  [[nodiscard]] Definition lookup(const File& file, std::size_t scope, std::string_view name) const;
  /// "dist.get_rank", "utils.flags.verbose".
  [[nodiscard]] Definition resolve(const File& file, std::size_t scope,
                                   std::string_view dotted) const;
  /// What a module of the user's has under a name; follows imports of imports.
  [[nodiscard]] Definition member(const File& module, std::string_view name, int depth = 0) const;
  /// The file of "package.utils"; nullptr: it is none at hand.
  [[nodiscard]] const File* module(std::string_view dotted) const;
  /// The qualified name of the first base of a class that no file at hand defines; with it the
  /// classes on the way.
  [[nodiscard]] std::vector<Definition> bases_of(const Definition& one) const;

 private:
  [[nodiscard]] Definition imported(std::string_view qualified, int depth) const;

  std::vector<File> files_;
};

/// The innermost class around a scope, itself included; kNone: none.
std::size_t class_of(std::span<const Scope> scopes, std::size_t scope);

/// The last name of "a.b.c".
std::string_view last_of(std::string_view dotted);

}  // namespace ddpdoctor::program
