// SPDX-License-Identifier: Apache-2.0
// What `object.name` means, by the rules of object.__getattribute__: the classes of the object in
// their order, descriptors, then the object's own attributes. Nothing is called: where Python would
// run code, the answer names the function, and whoever asks may read its source.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/stacks/python/objects.h"

namespace ddpdoctor::stacks {

/// The outcome of a lookup.
struct Attribute {
  enum class Kind {
    kAbsent,    // Python would raise AttributeError
    kValue,     // `value` is the object
    kMethod,    // `value` is a function (Python's or C's) bound to the object
    kProperty,  // `value` is a function that Python would call with the object
    kUnknown,   // only running code tells; `reason` says which
  };
  Kind kind = Kind::kAbsent;
  RemoteAddress value = 0;
  std::string reason;
};

/// Looks up attributes in one interpreter; remembers the order of classes.
class Attributes {
 public:
  /// Must outlive this.
  explicit Attributes(PythonObjects& objects) : objects_(objects) {}

  Attribute find(RemoteAddress object, std::string_view name);
  /// The entry of the first class, in method resolution order, that has the name, as it lies there:
  /// no descriptor is followed. Nothing when no class written in Python has it.
  std::optional<RemoteAddress> in_class(RemoteAddress type, std::string_view name);
  /// The class and those it inherits from, itself first; empty when unreadable.
  const std::vector<RemoteAddress>& order(RemoteAddress type);
  /// True when a class of this qualified name and module is among those of the type:
  /// "torch.nn.modules.module", "Module".
  bool derives_from(RemoteAddress type, std::string_view module, std::string_view name);
  /// __module__ of a class; empty when it is not written in Python.
  std::string module_of(RemoteAddress type);
  /// A member of an enumeration: it has a name and a value of its own.
  bool is_enum_member(RemoteAddress object);

 private:
  Attribute of_class(RemoteAddress type, std::string_view name);
  std::optional<Attribute> by_descriptor(RemoteAddress object, RemoteAddress descriptor, bool data);
  Attribute by_fallback(RemoteAddress object, RemoteAddress type, std::string_view name);
  Attribute slot(RemoteAddress object, RemoteAddress descriptor);
  std::optional<Attribute> of_enum(RemoteAddress object, std::string_view name);

  PythonObjects& objects_;
  std::map<RemoteAddress, std::vector<RemoteAddress>> orders_;
};

}  // namespace ddpdoctor::stacks
