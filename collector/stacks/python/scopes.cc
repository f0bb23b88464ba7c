// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/scopes.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostNames = 256;
constexpr std::size_t kLongestName = 64;

// Include/internal/pycore_code.h: co_localspluskinds.

// PyCodeObject.co_argcount: after the object's header up to 3.10; among the ints after four words
// since 3.11 (Include/cpython/code.h).
constexpr std::int64_t kArgumentsBefore311 = 16;

void append(PythonObjects& objects, RemoteAddress tuple, bool cells, LocalNames& out) {
  const auto names = objects.elements(tuple, kMostNames);
  objects.expect(names);
  for (const RemoteAddress name : names) {
    if (out.names.size() >= kMostNames) {
      return;
    }
    out.names.push_back(base::printable(objects.string(name, kLongestName).value_or("?")));
    out.cells.push_back(cells);
  }
}

std::size_t arguments_of(PythonObjects& objects, RemoteAddress code, std::size_t most) {
  const PythonLayout& layout = objects.layout();
  const std::int64_t offset =
      layout.version < kVersion311 ? kArgumentsBefore311 : layout.code_first_line - 16;
  const auto count = objects.memory().get<std::int32_t>(at(code, offset)).value_or(0);
  return count > 0 ? std::min(static_cast<std::size_t>(count), most) : 0;
}

}  // namespace

std::optional<std::size_t> LocalNames::slot(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt
                              : std::optional(static_cast<std::size_t>(found - names.begin()));
}

LocalNames local_names_of(PythonObjects& objects, RemoteAddress code) {
  const PythonLayout& layout = objects.layout();
  RemoteMemory& memory = objects.memory();
  LocalNames out;
  append(objects, pointer(memory, at(code, layout.code_local_names)), false, out);
  if (layout.code_local_kinds < 0) {  // ≤3.10: locals, then cells, then free variables
    append(objects, pointer(memory, at(code, layout.code_cell_names)), true, out);
    append(objects, pointer(memory, at(code, layout.code_free_names)), true, out);
  } else {
    const auto kinds =
        objects.bytes(pointer(memory, at(code, layout.code_local_kinds)), kMostNames).value_or("");
    for (std::size_t i = 0; i < std::min(kinds.size(), out.names.size()); ++i) {
      out.cells[i] = (static_cast<unsigned char>(kinds[i]) & (kCellLocal | kFreeLocal)) != 0;
    }
  }
  out.arguments = arguments_of(objects, code, out.names.size());
  return out;
}

std::optional<FunctionParts> function_parts(PythonObjects& objects, RemoteAddress function) {
  if (objects.type_name(function) != "function") {
    return std::nullopt;
  }
  RemoteMemory& memory = objects.memory();
  const value_layout::Function layout = value_layout::function(objects.layout().version);
  FunctionParts parts;
  parts.code = pointer(memory, at(function, layout.code));
  parts.globals = pointer(memory, at(function, layout.globals));
  parts.closure = pointer(memory, at(function, layout.closure));
  parts.defaults = pointer(memory, at(function, layout.defaults));
  parts.module = objects.string(pointer(memory, at(function, layout.module)), 256).value_or("");
  parts.qualname = objects.string(pointer(memory, at(function, layout.qualname)), 256).value_or("");
  if (objects.type_name(parts.code) != "code") {
    return std::nullopt;
  }
  parts.code_name =
      objects.string(pointer(memory, at(parts.code, objects.layout().code_name)), 256).value_or("");
  return parts;
}

Scope::Scope(PythonObjects& objects, const RawPythonFrame& frame)
    : objects_(objects), names_(local_names_of(objects, frame.code)) {
  const PythonLayout& layout = objects.layout();
  RemoteMemory& memory = objects.memory();
  slots_.resize(names_.names.size());
  if (!slots_.empty() && !memory.read(at(frame.address, layout.frame_locals),
                                      std::as_writable_bytes(std::span(slots_)))) {
    slots_.assign(slots_.size(), 0);
  }
  const value_layout::Namespaces offsets = value_layout::namespaces(layout.version);
  const auto field = [&](std::int64_t offset) {
    return untagged(pointer(memory, at(frame.address, offset)), layout.version);
  };
  globals_ = field(offsets.globals);
  builtins_ = field(offsets.builtins);
  if (names_.names.empty()) {
    namespace_ = field(offsets.locals);
  }
}

Scope::Scope(PythonObjects& objects, const FunctionParts& function,
             const std::vector<RemoteAddress>& arguments)
    : objects_(objects),
      names_(local_names_of(objects, function.code)),
      slots_(names_.names.size(), 0),
      globals_(function.globals) {
  const auto defaults = objects.elements(function.defaults, kMostNames);
  for (std::size_t i = 0; i < names_.arguments; ++i) {
    const std::size_t missing = names_.arguments - i;  // counted from the last argument
    if (i < arguments.size()) {
      slots_[i] = arguments[i];
    } else if (missing <= defaults.size()) {
      slots_[i] = defaults[defaults.size() - missing];
    }
  }
  // The free variables are the last slots, in the closure's order.
  const auto closure = objects.elements(function.closure, kMostNames);
  for (std::size_t i = 0; i < closure.size() && i < slots_.size(); ++i) {
    slots_[slots_.size() - closure.size() + i] = closure[i];
  }
  const auto own = objects.item(globals_, "__builtins__");
  if (own) {  // a module; in modules other than __main__, its dict
    builtins_ = objects.type_name(*own) == "module" ? objects.own_dict(*own) : *own;
  }
}

std::vector<std::string> Scope::parameters() const {
  return {names_.names.begin(),
          names_.names.begin() + static_cast<std::ptrdiff_t>(names_.arguments)};
}

RemoteAddress Scope::slot_value(std::size_t slot, RemoteAddress content) {
  // An argument that a closure uses is a plain value until its cell is created.
  if (content != 0 && names_.cells[slot] && objects_.type_name(content) == "cell") {
    return pointer(objects_.memory(), at(content, objects_.layout().cell_content));
  }
  return content;
}

Binding Scope::find(std::string_view name) {
  // ≤3.10: an argument that is a cell has two slots with the same name, one of them empty.
  bool is_local = false;
  for (std::size_t i = 0; i < names_.names.size(); ++i) {
    if (names_.names[i] != name) {
      continue;
    }
    is_local = true;
    const RemoteAddress value = slot_value(i, untagged(slots_[i], objects_.layout().version));
    if (value != 0) {
      return {.kind = Binding::Kind::kValue, .value = value, .local = true};
    }
  }
  if (is_local) {
    return {.kind = Binding::Kind::kUnbound, .value = 0, .local = true};
  }
  for (const RemoteAddress names : {namespace_, globals_, builtins_}) {
    const auto found = names != 0 ? objects_.item(names, name) : std::nullopt;
    if (found) {
      return {.kind = Binding::Kind::kValue, .value = *found, .local = names == namespace_};
    }
  }
  return {};
}

std::vector<std::pair<std::string, RemoteAddress>> Scope::locals() {
  std::vector<RemoteAddress> held;
  for (const RemoteAddress slot : slots_) {
    held.push_back(untagged(slot, objects_.layout().version));
  }
  objects_.expect(held);
  std::vector<std::pair<std::string, RemoteAddress>> out;
  for (std::size_t i = 0; i < names_.names.size(); ++i) {
    const RemoteAddress value = slot_value(i, untagged(slots_[i], objects_.layout().version));
    if (value != 0) {
      out.emplace_back(names_.names[i], value);
    }
  }
  return out;
}

}  // namespace ddpdoctor::stacks
