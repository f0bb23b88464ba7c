// SPDX-License-Identifier: Apache-2.0
// The value of `object.name` by the rules of object.__getattribute__: the object's classes in their
// order, descriptors, then the object's own attributes. Nothing is called: if Python would run
// code, the result names the function, whose source the caller can read.
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
    kMethod,    // `value` is a function (Python or C) bound to the object
    kProperty,  // `value` is a function that Python would call with the object
    kUnknown,   // depends on running code; `reason` names it
  };
  Kind kind = Kind::kAbsent;
  RemoteAddress value = 0;
  std::string reason;
};

/// Looks up attributes in one interpreter; caches the order of classes.
class Attributes {
 public:
  /// `objects` must outlive this.
  explicit Attributes(PythonObjects& objects) : objects_(objects) {}

  Attribute find(RemoteAddress object, std::string_view name);
  /// The entry of the first class in method resolution order that has the name, without following
  /// descriptors. Nothing if no class written in Python has it.
  std::optional<RemoteAddress> in_class(RemoteAddress type, std::string_view name);
  /// The class and its bases in method resolution order; empty if unreadable.
  const std::vector<RemoteAddress>& order(RemoteAddress type);
  /// True if the type is, or derives from, the class with this module and qualified name:
  /// "torch.nn.modules.module", "Module".
  bool derives_from(RemoteAddress type, std::string_view module, std::string_view name);
  /// __module__ of a class; empty if it is not written in Python.
  std::string module_of(RemoteAddress type);
  /// A member of an enumeration, which has a name and a value.
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
