// SPDX-License-Identifier: Apache-2.0
// Python values in another process, read by their layout alone: no code runs in the target, no lock
// is taken there. An object may be changed or freed while it is read, so every answer is either
// plausible or absent, and never trusted as a size.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/stacks/python/offsets.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// How much of a value `repr` shows.
struct ReprLimits {
  std::size_t text = 120;  // characters of one string
  std::size_t items = 16;  // elements of one container
  int depth = 3;           // nested containers
};

/// Renders an object of a type that `repr` does not know (a tensor, a process group); nothing = not
/// mine.
using ForeignRepr =
    std::function<std::optional<std::string>(RemoteAddress object, std::string_view type_name)>;

/// Reads objects of one interpreter. A null or foreign address is never an error: the answer is
/// absent or empty.
class PythonObjects {
 public:
  /// Both must outlive this.
  PythonObjects(RemoteMemory& memory, const PythonLayout& layout);

  /// Where sys.modules of the main interpreter lies: needed by `module` only.
  void set_modules(RemoteAddress modules) {
    modules_ = modules;
  }
  void set_foreign_repr(ForeignRepr foreign) {
    foreign_ = std::move(foreign);
  }

  /// The type object; 0 when unreadable.
  RemoteAddress type_of(RemoteAddress object);
  /// tp_name of the object's type ("int", "Tensor"; extension types carry their module:
  /// "torch.Size"); empty when unreadable.
  std::string type_name(RemoteAddress object);
  /// tp_flags of the object's type; 0 when unreadable.
  std::uint64_t type_flags(RemoteAddress object);
  /// tp_flags of a type object itself.
  std::uint64_t flags_of_type(RemoteAddress type);
  /// Qualified name of a class ("Trainer.Mode"); tp_name of one that is not written in Python.
  std::string class_name(RemoteAddress type);
  /// The dict object that holds the object's own attributes; 0 = none (3.11+ keeps most without).
  RemoteAddress own_dict(RemoteAddress object);
  /// ob_size of a variable-sized object (tuple, list, bytes, deque), as it claims.
  std::uint64_t claimed_size(RemoteAddress object) {
    return length(object);
  }
  /// Bytes of the object header (PyObject): C data of an extension object starts here.
  [[nodiscard]] std::size_t header_size() const {
    return layout_.object_header;
  }
  [[nodiscard]] RemoteMemory& memory() {
    return memory_;
  }
  [[nodiscard]] const PythonLayout& layout() const {
    return layout_;
  }

  /// True for the None object; false for anything else or unreadable.
  bool is_none(RemoteAddress object);
  /// str as UTF-8, at most `limit` characters; nothing for other types. Lone surrogates become
  /// U+FFFD.
  std::optional<std::string> string(RemoteAddress object, std::size_t limit = 4096);
  /// bytes, at most `limit`; nothing for other types.
  std::optional<std::string> bytes(RemoteAddress object, std::size_t limit = 1 << 16);
  /// int or bool that fits; nothing for other types and larger numbers.
  std::optional<std::int64_t> integer(RemoteAddress object);
  std::optional<double> real(RemoteAddress object);
  /// Elements of a tuple or list (or a subclass such as torch.Size), at most `limit`; empty for
  /// other types.
  std::vector<RemoteAddress> elements(RemoteAddress object, std::size_t limit = 1 << 16);
  /// (key, value) of a dict (or a subclass) in insertion order (values of instances: in their
  /// class's order), at most `limit`, of a huge dict only the first 131072; empty for other types.
  std::vector<std::pair<RemoteAddress, RemoteAddress>> items(RemoteAddress dict,
                                                             std::size_t limit = 1 << 20);
  /// Value of the str key `name` in a dict; a few reads where the target's string hash can be
  /// computed, a scan otherwise.
  std::optional<RemoteAddress> item(RemoteAddress dict, std::string_view name);
  /// __dict__ of an imported module ("torch.distributed.distributed_c10d").
  std::optional<RemoteAddress> module(std::string_view name);
  /// Entry `name` of the object's own __dict__ (instances, modules); class attributes and slots are
  /// not searched.
  std::optional<RemoteAddress> attribute(RemoteAddress object, std::string_view name);

  /// (name, value) of an instance's own attributes, in no order that matters, at most `limit`;
  /// class attributes and slots are not among them.
  std::vector<std::pair<RemoteAddress, RemoteAddress>> own_attributes(RemoteAddress object,
                                                                      std::size_t limit);

  /// Short text for people: Python's own spelling of plain values and containers, `<Type at 0x…>`
  /// of others. Printable, bounded.
  std::string repr(RemoteAddress object, const ReprLimits& limits = {});

  /// The key of the target's string hash (_Py_HashSecret); makes `item` fast.
  void set_hash_secret(std::uint64_t first, std::uint64_t second);

 private:
  struct Type {
    std::string name;
    std::uint64_t flags = 0;
    std::int64_t basic_size = 0;
    std::int64_t item_size = 0;
    std::int64_t dict_offset = 0;
    RemoteAddress shared_keys = 0;  // heap types: keys of instances without a dict
  };
  /// The table of a dict: hash index, then entries in insertion order.
  struct Keys {
    RemoteAddress index = 0;
    std::uint64_t size = 0;       // slots of the index, a power of two
    std::size_t index_width = 0;  // bytes of a slot
    RemoteAddress entries = 0;
    std::uint64_t count = 0;
    std::size_t stride = 0;  // bytes of an entry; the key is its last pointer but one
  };
  using Pairs = std::vector<std::pair<RemoteAddress, RemoteAddress>>;

  const Type& type_at(RemoteAddress type_address);
  const Type& type_behind(RemoteAddress object);
  std::optional<Keys> keys_at(RemoteAddress address);
  Pairs entries(const Keys& keys, RemoteAddress values, std::size_t limit);
  std::optional<RemoteAddress> find(RemoteAddress keys_address, RemoteAddress values,
                                    std::string_view name);
  std::optional<RemoteAddress> scan(const Keys& keys, RemoteAddress values, std::string_view name);
  std::optional<RemoteAddress> probe(const Keys& keys, RemoteAddress values, std::string_view name,
                                     std::uint64_t hash);
  RemoteAddress entry_value(const Keys& keys, RemoteAddress values, std::uint64_t position);
  bool is_named(RemoteAddress key, std::string_view name);
  std::optional<std::uint64_t> hash_of(std::string_view name, const Keys& keys);
  RemoteAddress instance_dict(RemoteAddress object, const Type& type);
  RemoteAddress instance_values(RemoteAddress object, const Type& type);
  std::uint64_t length(RemoteAddress object);
  void append_repr(std::string& out, RemoteAddress object, const ReprLimits& limits, int depth);
  bool append_scalar(std::string& out, RemoteAddress object, const Type& type,
                     const ReprLimits& limits);
  bool append_container(std::string& out, RemoteAddress object, const Type& type,
                        const ReprLimits& limits, int depth);

  RemoteMemory& memory_;
  const PythonLayout& layout_;
  RemoteAddress modules_ = 0;
  ForeignRepr foreign_;
  std::map<RemoteAddress, Type> types_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> hash_secret_;
  std::optional<bool> hash_proven_;  // our hash of a key equals the one the target stored
};

}  // namespace ddpdoctor::stacks
