// SPDX-License-Identifier: Apache-2.0
// Reads Python values in another process from their memory layout alone: no code runs in the target
// and no lock is taken there. An object may be changed or freed while it is read, so every result
// is either plausible or absent, and is never trusted as a size.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/stacks/python/offsets.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// Limits of the text that `repr` produces.
struct ReprLimits {
  std::size_t text = 120;  // characters of one string
  std::size_t items = 16;  // elements of one container
  int depth = 3;           // depth of nested containers
};

/// Renders an object of a type that `repr` does not support (a tensor, a process group); nothing =
/// not handled.
using ForeignRepr =
    std::function<std::optional<std::string>(RemoteAddress object, std::string_view type_name)>;

/// Reads objects of one interpreter. A null or invalid address is never an error: the result is
/// absent or empty.
class PythonObjects {
 public:
  /// Both references must outlive this.
  PythonObjects(RemoteMemory& memory, const PythonLayout& layout);

  /// The address of sys.modules of the main interpreter; needed only by `module`.
  void set_modules(RemoteAddress modules) {
    modules_ = modules;
  }
  void set_foreign_repr(ForeignRepr foreign) {
    foreign_ = std::move(foreign);
  }

  /// The type object; 0 if unreadable.
  RemoteAddress type_of(RemoteAddress object);
  /// tp_name of the object's type ("int", "Tensor"; extension types include their module:
  /// "torch.Size"); empty if unreadable.
  std::string type_name(RemoteAddress object);
  /// tp_flags of the object's type; 0 if unreadable.
  std::uint64_t type_flags(RemoteAddress object);
  /// tp_flags of a type object itself.
  std::uint64_t flags_of_type(RemoteAddress type);
  /// Qualified name of a class ("Trainer.Mode"); tp_name of a class that is not written in Python.
  std::string class_name(RemoteAddress type);
  /// The dict object with the object's own attributes; 0 = none (most objects of 3.11+ have none).
  RemoteAddress own_dict(RemoteAddress object);
  /// ob_size of a variable-sized object (tuple, list, bytes, deque); not validated.
  std::uint64_t claimed_size(RemoteAddress object) {
    return length(object);
  }
  /// Bytes of the object header (PyObject): the C data of an extension object starts after it.
  [[nodiscard]] std::size_t header_size() const {
    return layout_.object_header;
  }
  [[nodiscard]] RemoteMemory& memory() {
    return memory_;
  }
  [[nodiscard]] const PythonLayout& layout() const {
    return layout_;
  }

  /// Says which objects will be read next, so that they, their types and the names of these are
  /// fetched together (RemoteMemory::expect).
  void expect(std::span<const RemoteAddress> objects);

  /// True for the None object; false for anything else and if unreadable.
  bool is_none(RemoteAddress object);
  /// str as UTF-8, at most `limit` characters; nothing for other types. Lone surrogates become
  /// U+FFFD.
  std::optional<std::string> string(RemoteAddress object, std::size_t limit = 4096);
  /// bytes, at most `limit`; nothing for other types.
  std::optional<std::string> bytes(RemoteAddress object, std::size_t limit = 1 << 16);
  /// An int or bool that fits in 64 bits; nothing for other types and larger numbers.
  std::optional<std::int64_t> integer(RemoteAddress object);
  std::optional<double> real(RemoteAddress object);
  /// Elements of a tuple or list (or a subclass such as torch.Size), at most `limit`; empty for
  /// other types.
  std::vector<RemoteAddress> elements(RemoteAddress object, std::size_t limit = 1 << 16);
  /// (key, value) pairs of a dict (or a subclass) in insertion order (for values of instances: in
  /// their class's order), at most `limit`, and only the first 131072 of a huge dict; empty for
  /// other types.
  std::vector<std::pair<RemoteAddress, RemoteAddress>> items(RemoteAddress dict,
                                                             std::size_t limit = 1 << 20);
  /// Value of the str key `name` in a dict: a few reads if the target's string hash can be
  /// computed, otherwise a scan.
  std::optional<RemoteAddress> item(RemoteAddress dict, std::string_view name);
  /// __dict__ of an imported module ("torch.distributed.distributed_c10d").
  std::optional<RemoteAddress> module(std::string_view name);
  /// Entry `name` of the object's own __dict__ (instances, modules); does not search class
  /// attributes and slots.
  std::optional<RemoteAddress> attribute(RemoteAddress object, std::string_view name);

  /// (name, value) pairs of an instance's own attributes, in unspecified order, at most `limit`;
  /// without class attributes and slots.
  std::vector<std::pair<RemoteAddress, RemoteAddress>> own_attributes(RemoteAddress object,
                                                                      std::size_t limit);

  /// Short text for people: Python's own spelling of plain values and containers, `<Type at 0x…>`
  /// for others. Printable and bounded.
  std::string repr(RemoteAddress object, const ReprLimits& limits = {});

  /// Sets the key of the target's string hash (_Py_HashSecret), which makes `item` fast.
  void set_hash_secret(std::uint64_t first, std::uint64_t second);

 private:
  struct Type {
    std::string name;
    std::uint64_t flags = 0;
    std::int64_t basic_size = 0;
    std::int64_t item_size = 0;
    std::int64_t dict_offset = 0;
    RemoteAddress shared_keys = 0;  // for heap types: the keys of instances without a dict
  };
  /// The table of a dict: hash index, then entries in insertion order.
  struct Keys {
    RemoteAddress index = 0;
    std::uint64_t size = 0;       // slots of the index, a power of two
    std::size_t index_width = 0;  // bytes of one index slot
    RemoteAddress entries = 0;
    std::uint64_t count = 0;
    std::size_t stride = 0;  // bytes of an entry; the key is its second-to-last pointer
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
  std::optional<bool> hash_proven_;  // our hash of a key equals the hash stored in the target
};

}  // namespace ddpdoctor::stacks
