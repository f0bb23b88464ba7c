// SPDX-License-Identifier: Apache-2.0
// Scalars, sequences and repr of Python objects in another process. The flags of its type decide
// what an object is (so subclasses count), except for None, bool and float, which have no flag.
#include "collector/stacks/python/objects.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/encoding.h"
#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kLongestTypeName = 256;
constexpr std::size_t kLongestRepr = 1000;

/// Code units of 1, 2 or 4 bytes to UTF-8.
std::string utf8(std::span<const std::byte> units, std::size_t width) {
  std::string out;
  out.reserve(units.size() / width);
  for (std::size_t i = 0; i + width <= units.size(); i += width) {
    std::uint32_t c = 0;
    std::memcpy(&c, units.data() + i, width);
    const bool half_or_none = (c >= 0xd800 && c < 0xe000) || c > 0x10ffff;
    base::append_utf8(half_or_none ? 0xfffd : c, out);
  }
  return out;
}

/// Python's spelling of a float: the shortest digits that read back to the same value, with a
/// point.
std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string quoted(std::string_view text, bool cut) {
  std::string out = "'";
  for (const char c : base::printable(text)) {
    if (c == '\'') {
      out += '\\';
    }
    out += c;
  }
  return out + (cut ? "…'" : "'");
}

}  // namespace

PythonObjects::PythonObjects(RemoteMemory& memory, const PythonLayout& layout)
    : memory_(memory), layout_(layout) {}

RemoteAddress PythonObjects::type_of(RemoteAddress object) {
  if (object == 0) {
    return 0;
  }
  return memory_.get<RemoteAddress>(at(object, layout_.object_type)).value_or(0);
}

void PythonObjects::expect(std::span<const RemoteAddress> objects) {
  memory_.expect(objects);
  std::vector<RemoteAddress> types;
  for (const RemoteAddress object : objects) {
    const RemoteAddress type = type_of(object);
    if (type != 0 && !types_.contains(type)) {
      types.push_back(type);
    }
  }
  memory_.expect(types);
  std::vector<RemoteAddress> names;
  for (const RemoteAddress type : types) {
    names.push_back(pointer(memory_, at(type, layout_.type_name)));
  }
  memory_.expect(names);
}

const PythonObjects::Type& PythonObjects::type_at(RemoteAddress type_address) {
  const auto known = types_.find(type_address);
  if (known != types_.end()) {
    return known->second;
  }
  Type type;
  std::vector<std::byte> block(static_cast<std::size_t>(layout_.type_dict_offset) + 8);
  if (type_address != 0 && memory_.read(type_address, block)) {
    const auto word = [&block](std::int64_t offset) {
      std::int64_t value = 0;
      std::memcpy(&value, block.data() + offset, sizeof value);
      return value;
    };
    const auto name_address = static_cast<RemoteAddress>(word(layout_.type_name));
    type.name = base::printable(memory_.c_string(name_address, kLongestTypeName).value_or(""));
    type.flags = static_cast<std::uint64_t>(word(layout_.type_flags));
    type.basic_size = word(layout_.type_basic_size);
    type.item_size = word(layout_.type_item_size);
    type.dict_offset = word(layout_.type_dict_offset);
    if ((type.flags & kHeapType) != 0) {
      type.shared_keys =
          memory_.get<RemoteAddress>(at(type_address, layout_.type_shared_keys)).value_or(0);
    }
  }
  return types_.emplace(type_address, std::move(type)).first->second;
}

const PythonObjects::Type& PythonObjects::type_behind(RemoteAddress object) {
  return type_at(type_of(object));
}

std::string PythonObjects::type_name(RemoteAddress object) {
  return type_behind(object).name;
}

std::uint64_t PythonObjects::length(RemoteAddress object) {
  const auto size = memory_.get<std::int64_t>(at(object, layout_.object_size)).value_or(0);
  return size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

std::uint64_t PythonObjects::type_flags(RemoteAddress object) {
  return type_behind(object).flags;
}

std::uint64_t PythonObjects::flags_of_type(RemoteAddress type) {
  return type_at(type).flags;
}

std::string PythonObjects::class_name(RemoteAddress type) {
  const Type& known = type_at(type);
  if ((known.flags & kHeapType) != 0) {
    const auto qualname =
        string(memory_
                   .get<RemoteAddress>(
                       at(type, layout_.type_shared_keys - value_layout::kQualnameBeforeSharedKeys))
                   .value_or(0),
               kLongestTypeName);
    if (qualname && !qualname->empty()) {
      return base::printable(*qualname);
    }
  }
  return known.name;
}

RemoteAddress PythonObjects::own_dict(RemoteAddress object) {
  return object != 0 ? instance_dict(object, type_behind(object)) : 0;
}

bool PythonObjects::is_none(RemoteAddress object) {
  return type_name(object) == "NoneType";
}

std::optional<std::string> PythonObjects::string(RemoteAddress object, std::size_t limit) {
  if ((type_behind(object).flags & kStringSubclass) == 0) {
    return std::nullopt;
  }
  std::array<std::byte, 64> header{};
  const auto header_bytes = std::span(header).first(
      std::min<std::size_t>(static_cast<std::size_t>(layout_.string_ascii), 64));
  if (!memory_.read(object, header_bytes)) {
    return std::nullopt;
  }
  std::uint64_t characters = 0;
  std::uint32_t state = 0;
  std::memcpy(&characters, header.data() + layout_.string_length, sizeof characters);
  std::memcpy(&state, header.data() + layout_.string_state, sizeof state);
  // struct state: interned 2 bits, kind 3, compact 1, ascii 1.
  const std::size_t width = (state >> 2U) & 7U;
  const bool compact = ((state >> 5U) & 1U) != 0;
  const bool ascii = ((state >> 6U) & 1U) != 0;
  if (width != 1 && width != 2 && width != 4) {
    return std::nullopt;
  }
  RemoteAddress text = at(object, ascii ? layout_.string_ascii : layout_.string_compact);
  if (!compact) {  // an instance of a subclass of str: the text is elsewhere
    text = memory_.get<RemoteAddress>(at(object, layout_.string_compact)).value_or(0);
  }
  std::vector<std::byte> units(std::min<std::uint64_t>(characters, limit) * width);
  if (!memory_.read(text, units)) {
    return std::nullopt;
  }
  return utf8(units, width);
}

std::optional<std::string> PythonObjects::bytes(RemoteAddress object, std::size_t limit) {
  if ((type_behind(object).flags & kBytesSubclass) == 0) {
    return std::nullopt;
  }
  std::string text(std::min<std::uint64_t>(length(object), limit), '\0');
  if (!memory_.read(at(object, layout_.bytes_text), std::as_writable_bytes(std::span(text)))) {
    return std::nullopt;
  }
  return text;
}

std::optional<std::int64_t> PythonObjects::integer(RemoteAddress object) {
  if ((type_behind(object).flags & kIntSubclass) == 0) {
    return std::nullopt;
  }
  // 3.12+ stores the sign in the two low bits of lv_tag (2 = negative) and the number of digits
  // from bit 3; before, ob_size has both.
  const auto tag = memory_.get<std::int64_t>(at(object, layout_.object_size));
  if (!tag) {
    return std::nullopt;
  }
  const bool tagged = layout_.version >= kVersion312;
  const bool negative = tagged ? (*tag & 3) == 2 : *tag < 0;
  const auto bits = static_cast<std::uint64_t>(*tag);
  const std::uint64_t digits = tagged ? bits >> 3U : (negative ? 0 - bits : bits);
  if (digits > 3) {
    return std::nullopt;
  }
  std::array<std::uint32_t, 3> digit{};
  const auto wanted = std::as_writable_bytes(std::span(digit).first(digits));
  if (!memory_.read(at(object, layout_.int_digits), wanted) || digit[2] > 7) {
    return std::nullopt;
  }
  const std::uint64_t magnitude = digit[0] | (std::uint64_t{digit[1]} << kDigitBits) |
                                  (std::uint64_t{digit[2]} << (2 * kDigitBits));
  if (magnitude > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  const auto value = static_cast<std::int64_t>(magnitude);
  return negative ? -value : value;
}

std::optional<double> PythonObjects::real(RemoteAddress object) {
  if (type_name(object) != "float") {
    return std::nullopt;
  }
  return memory_.get<double>(at(object, layout_.float_value));
}

std::vector<RemoteAddress> PythonObjects::elements(RemoteAddress object, std::size_t limit) {
  const std::uint64_t flags = type_behind(object).flags;
  if ((flags & (kTupleSubclass | kListSubclass)) == 0) {
    return {};
  }
  RemoteAddress items = at(object, layout_.tuple_items);
  if ((flags & kListSubclass) != 0) {
    items = memory_.get<RemoteAddress>(at(object, layout_.list_items)).value_or(0);
  }
  std::vector<RemoteAddress> elements(std::min<std::uint64_t>(length(object), limit));
  if (!memory_.read(items, std::as_writable_bytes(std::span(elements)))) {
    return {};
  }
  return elements;
}

std::optional<RemoteAddress> PythonObjects::module(std::string_view name) {
  const auto found = item(modules_, name);
  if (!found) {
    return std::nullopt;
  }
  const RemoteAddress dict = instance_dict(*found, type_behind(*found));
  return dict != 0 ? std::optional(dict) : std::nullopt;
}

std::string PythonObjects::repr(RemoteAddress object, const ReprLimits& limits) {
  std::string out;
  append_repr(out, object, limits, 0);
  return out;
}

bool PythonObjects::append_scalar(std::string& out, RemoteAddress object, const Type& type,
                                  const ReprLimits& limits) {
  if (type.name == "NoneType") {
    out += "None";
  } else if (type.name == "bool") {
    out += integer(object).value_or(0) != 0 ? "True" : "False";
  } else if (type.name == "int") {
    const auto number = integer(object);
    out += number ? fmt::format("{}", *number) : "<int>";
  } else if (const auto number = real(object)) {
    out += float_text(*number);
  } else if ((type.flags & kStringSubclass) != 0) {
    const auto text = string(object, limits.text);
    const auto characters =
        memory_.get<std::uint64_t>(at(object, layout_.string_length)).value_or(0);
    out += text ? quoted(*text, characters > limits.text) : "<str>";
  } else if ((type.flags & kBytesSubclass) != 0) {
    const auto text = bytes(object, limits.text);
    out += text ? "b" + quoted(*text, length(object) > limits.text) : "<bytes>";
  } else if ((type.flags & kTypeSubclass) != 0) {
    out += "<class '" + type_at(object).name + "'>";
  } else {
    return false;
  }
  return true;
}

bool PythonObjects::append_container(std::string& out, RemoteAddress object, const Type& type,
                                     const ReprLimits& limits, int depth) {
  const bool list = (type.flags & kListSubclass) != 0;
  const bool dict = (type.flags & kDictSubclass) != 0;
  if (!list && !dict && (type.flags & kTupleSubclass) == 0) {
    return false;
  }
  const char* brackets = dict ? "{}" : (list ? "[]" : "()");
  out += brackets[0];
  if (depth >= limits.depth) {
    out += "…";
  } else if (dict) {
    Pairs pairs = items(object, limits.items + 1);
    const bool cut = pairs.size() > limits.items;
    pairs.resize(std::min(pairs.size(), limits.items));
    for (const auto& [key, value] : pairs) {
      out += out.back() == '{' ? "" : ", ";
      append_repr(out, key, limits, depth + 1);
      out += ": ";
      append_repr(out, value, limits, depth + 1);
    }
    out += cut ? ", …" : "";
  } else {
    const auto parts = elements(object, limits.items);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out += i == 0 ? "" : ", ";
      append_repr(out, parts[i], limits, depth + 1);
    }
    out += length(object) > limits.items ? ", …" : "";
    out += !list && parts.size() == 1 ? "," : "";
  }
  out += brackets[1];
  return true;
}

void PythonObjects::append_repr(std::string& out, RemoteAddress object, const ReprLimits& limits,
                                int depth) {
  if (out.size() > kLongestRepr) {
    out += "…";
    return;
  }
  const Type& type = type_behind(object);
  if (append_scalar(out, object, type, limits)) {
    return;
  }
  if (foreign_) {  // before containers, because torch.Size is also a tuple
    if (const auto text = foreign_(object, type.name)) {
      out += *text;
      return;
    }
  }
  if (append_container(out, object, type, limits, depth)) {
    return;
  }
  out += type.name.empty() ? fmt::format("<unreadable at {:#x}>", object)
                           : fmt::format("<{} at {:#x}>", type.name, object);
}

}  // namespace ddpdoctor::stacks
