// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/attributes.h"

#include <algorithm>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/scopes.h"
#include "collector/stacks/python/value_layout.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostClasses = 64;
constexpr std::int64_t kLargestInstance = 1 << 20;

Attribute value(RemoteAddress address) {
  return {.kind = Attribute::Kind::kValue, .value = address, .reason = {}};
}

Attribute unknown(std::string reason) {
  return {.kind = Attribute::Kind::kUnknown, .value = 0, .reason = std::move(reason)};
}

}  // namespace

const std::vector<RemoteAddress>& Attributes::order(RemoteAddress type) {
  const auto known = orders_.find(type);
  if (known != orders_.end()) {
    return known->second;
  }
  const RemoteAddress mro = pointer(objects_.memory(), at(type, value_layout::kTypeMro));
  return orders_.emplace(type, objects_.elements(mro, kMostClasses)).first->second;
}

std::optional<RemoteAddress> Attributes::in_class(RemoteAddress type, std::string_view name) {
  for (const RemoteAddress one : order(type)) {
    const RemoteAddress dict = pointer(objects_.memory(), at(one, value_layout::kTypeDict));
    if (const auto found = dict != 0 ? objects_.item(dict, name) : std::nullopt) {
      return found;
    }
  }
  return std::nullopt;
}

std::string Attributes::module_of(RemoteAddress type) {
  if ((objects_.flags_of_type(type) & kHeapType) == 0) {
    return {};
  }
  const RemoteAddress dict = pointer(objects_.memory(), at(type, value_layout::kTypeDict));
  const auto module = dict != 0 ? objects_.item(dict, "__module__") : std::nullopt;
  return module ? objects_.string(*module, 256).value_or("") : std::string();
}

bool Attributes::derives_from(RemoteAddress type, std::string_view module, std::string_view name) {
  const auto& classes = order(type);
  return std::any_of(classes.begin(), classes.end(), [&](RemoteAddress one) {
    return objects_.class_name(one) == name && module_of(one) == module;
  });
}

bool Attributes::is_enum_member(RemoteAddress object) {
  const std::string meta = objects_.type_name(objects_.type_of(object));
  return meta == "EnumMeta" || meta == "EnumType";
}

std::optional<Attribute> Attributes::of_enum(RemoteAddress object, std::string_view name) {
  if ((name != "name" && name != "value") || !is_enum_member(object)) {
    return std::nullopt;
  }
  const auto own = objects_.attribute(object, name == "name" ? "_name_" : "_value_");
  return own ? std::optional(value(*own)) : std::nullopt;
}

Attribute Attributes::slot(RemoteAddress object, RemoteAddress descriptor) {
  RemoteMemory& memory = objects_.memory();
  const RemoteAddress member = pointer(memory, at(descriptor, value_layout::kMemberDefinition));
  const int type = memory.get<std::int32_t>(at(member, value_layout::kMemberType)).value_or(-1);
  const auto offset =
      memory.get<std::int64_t>(at(member, value_layout::kMemberOffset)).value_or(-1);
  if ((type != value_layout::kObjectMember && type != value_layout::kObjectMemberEx) ||
      offset < static_cast<std::int64_t>(objects_.header_size()) || offset > kLargestInstance) {
    return unknown("an attribute that is kept in C");
  }
  const auto held = memory.get<RemoteAddress>(at(object, offset));
  if (!held) {
    return unknown("its memory cannot be read");
  }
  return *held != 0 ? value(*held) : Attribute{};
}

/// The attribute that a class entry gives for an instance. `data`: consider only data descriptors,
/// which precede the instance's own attributes. Nothing if the entry is not of the wanted kind.
std::optional<Attribute> Attributes::by_descriptor(RemoteAddress object, RemoteAddress descriptor,
                                                   bool data) {
  RemoteMemory& memory = objects_.memory();
  const std::string kind = objects_.type_name(descriptor);
  const RemoteAddress inner = pointer(memory, at(descriptor, value_layout::kFirstField));
  if (kind == "property") {
    return Attribute{.kind = Attribute::Kind::kProperty, .value = inner, .reason = {}};
  }
  if (kind == "member_descriptor") {
    return slot(object, descriptor);
  }
  if (kind == "_collections._tuplegetter" || kind == "collections._tuplegetter") {
    const auto index = memory.get<std::uint64_t>(at(descriptor, value_layout::kFirstField));
    const auto items = objects_.elements(object, 256);
    const bool has =
        (objects_.type_flags(object) & kTupleSubclass) != 0 && index && *index < items.size();
    return has ? value(items[*index]) : unknown("a field of a tuple that cannot be read");
  }
  if (kind == "getset_descriptor") {
    return unknown("an attribute that is kept in C");
  }
  const RemoteAddress type = objects_.type_of(descriptor);
  const bool has_set = (objects_.flags_of_type(type) & kHeapType) != 0 && in_class(type, "__set__");
  if (has_set) {
    return unknown("a descriptor of class " + objects_.class_name(type));
  }
  if (data) {
    return std::nullopt;
  }
  if (kind == "function" || kind == "method_descriptor") {
    return Attribute{.kind = Attribute::Kind::kMethod, .value = descriptor, .reason = {}};
  }
  if (kind == "staticmethod") {
    return value(inner);
  }
  if (kind == "classmethod" || kind == "classmethod_descriptor") {
    return unknown("a class method");
  }
  if ((objects_.flags_of_type(type) & kHeapType) != 0 && in_class(type, "__get__")) {
    const auto function = objects_.attribute(descriptor, "func");
    if (objects_.class_name(type) == "cached_property" && function) {
      return Attribute{.kind = Attribute::Kind::kProperty, .value = *function, .reason = {}};
    }
    return unknown("a descriptor of class " + objects_.class_name(type));
  }
  return value(descriptor);
}

Attribute Attributes::of_class(RemoteAddress type, std::string_view name) {
  const auto members = in_class(type, "_member_map_");
  if (const auto member = members ? objects_.item(*members, name) : std::nullopt) {
    return value(*member);
  }
  const auto entry = in_class(type, name);
  if (!entry) {
    if ((objects_.flags_of_type(type) & kHeapType) == 0) {
      return unknown("an attribute of a class that is written in C");
    }
    return {};
  }
  const std::string kind = objects_.type_name(*entry);
  const RemoteAddress inner = pointer(objects_.memory(), at(*entry, value_layout::kFirstField));
  if (kind == "staticmethod") {
    return value(inner);
  }
  if (kind == "classmethod") {
    return {.kind = Attribute::Kind::kMethod, .value = inner, .reason = {}};
  }
  return value(*entry);
}

/// The result of __getattr__, which is known for torch.nn.Module.
Attribute Attributes::by_fallback(RemoteAddress object, RemoteAddress type, std::string_view name) {
  const auto fallback = in_class(type, "__getattr__");
  if (!fallback) {
    return {};
  }
  const auto parts = function_parts(objects_, *fallback);
  if (!parts || parts->module != "torch.nn.modules.module" ||
      parts->qualname != "Module.__getattr__") {
    return unknown("its class has a __getattr__");
  }
  for (const std::string_view place : {"_parameters", "_buffers", "_modules"}) {
    const auto dict = objects_.attribute(object, place);
    if (const auto found = dict ? objects_.item(*dict, name) : std::nullopt) {
      return value(*found);
    }
  }
  return {};
}

Attribute Attributes::find(RemoteAddress object, std::string_view name) {
  const RemoteAddress type = objects_.type_of(object);
  if (type == 0 || order(type).empty()) {
    return unknown("its memory cannot be read");
  }
  if ((objects_.type_flags(object) & kTypeSubclass) != 0) {
    return of_class(object, name);
  }
  if (auto of_member = of_enum(object, name)) {
    return *of_member;
  }
  const bool heap = (objects_.flags_of_type(type) & kHeapType) != 0;
  const auto entry = in_class(type, name);
  if (entry) {
    if (auto found = by_descriptor(object, *entry, true)) {
      return *found;
    }
  }
  if (heap && in_class(type, "__getattribute__")) {
    const auto own = in_class(type, "__getattribute__");
    if (objects_.type_name(*own) == "function") {
      return unknown("its class has a __getattribute__");
    }
  }
  if (const auto own = objects_.attribute(object, name)) {
    return value(*own);
  }
  if (entry) {
    return by_descriptor(object, *entry, false).value_or(value(*entry));
  }
  if (objects_.type_name(object) == "module") {
    return objects_.attribute(object, "__getattr__") ? unknown("its module has a __getattr__")
                                                     : Attribute{};
  }
  Attribute found = by_fallback(object, type, name);
  if (found.kind == Attribute::Kind::kAbsent && !heap) {
    return unknown("an attribute of an object that is written in C");
  }
  return found;
}

}  // namespace ddpdoctor::stacks
