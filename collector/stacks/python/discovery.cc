// SPDX-License-Identifier: Apache-2.0
// Finds the interpreter: the object that defines _PyRuntime, the version, the layout. A layout is
// used only if the lists it leads to look like lists of threads: a build with longer objects
// (Py_TRACE_REFS) must be refused, not misread.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python/runtime.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::string_view kCookie = "xdebugpy";
constexpr std::size_t kDebugOffsetsBytes = 1024;   // larger than the structure in any version
constexpr std::int64_t kLargestOffset = 16 << 20;  // PyInterpreterState has some hundred KiB

/// All offsets of a layout, in the order of the structure.
constexpr auto kFields = std::to_array<std::int64_t PythonLayout::*>({
    &PythonLayout::runtime_interpreters, &PythonLayout::runtime_gil,
    &PythonLayout::interpreter_next,     &PythonLayout::interpreter_threads,
    &PythonLayout::interpreter_id,       &PythonLayout::interpreter_modules,
    &PythonLayout::interpreter_gil,      &PythonLayout::gil_holder,
    &PythonLayout::gil_locked,           &PythonLayout::thread_next,
    &PythonLayout::thread_ident,         &PythonLayout::thread_native_id,
    &PythonLayout::thread_frame,         &PythonLayout::thread_cframe,
    &PythonLayout::cframe_frame,         &PythonLayout::cframe_previous,
    &PythonLayout::frame_code,           &PythonLayout::frame_instruction,
    &PythonLayout::frame_previous,       &PythonLayout::frame_locals,
    &PythonLayout::frame_owner,          &PythonLayout::frame_entry,
    &PythonLayout::code_filename,        &PythonLayout::code_name,
    &PythonLayout::code_qualname,        &PythonLayout::code_first_line,
    &PythonLayout::code_line_table,      &PythonLayout::code_bytes,
    &PythonLayout::code_first_traceable, &PythonLayout::code_local_names,
    &PythonLayout::code_local_kinds,     &PythonLayout::code_local_count,
    &PythonLayout::code_cell_names,      &PythonLayout::code_free_names,
    &PythonLayout::object_header,        &PythonLayout::object_type,
    &PythonLayout::object_size,          &PythonLayout::type_name,
    &PythonLayout::type_flags,           &PythonLayout::type_basic_size,
    &PythonLayout::type_item_size,       &PythonLayout::type_dict_offset,
    &PythonLayout::type_shared_keys,     &PythonLayout::string_length,
    &PythonLayout::string_hash,          &PythonLayout::string_state,
    &PythonLayout::string_ascii,         &PythonLayout::string_compact,
    &PythonLayout::bytes_text,           &PythonLayout::int_digits,
    &PythonLayout::float_value,          &PythonLayout::tuple_items,
    &PythonLayout::list_items,           &PythonLayout::dict_keys,
    &PythonLayout::dict_values,          &PythonLayout::keys_size,
    &PythonLayout::keys_count,           &PythonLayout::keys_index,
    &PythonLayout::values_first,         &PythonLayout::cell_content,
});

std::string spelled(std::int32_t version) {
  return fmt::format("{}.{}", version >> 8, version & 0xff);
}

std::string known_versions() {
  const auto rows = python_layouts();
  return fmt::format("{} to {}", spelled(rows.front().version), spelled(rows.back().version));
}

/// The version of "python3.N" in a path as 0x03NN; 0 = none.
std::int32_t version_in(std::string_view path) {
  constexpr std::string_view kStem = "python3.";
  const std::size_t found = path.rfind(kStem);
  if (found == std::string_view::npos) {
    return 0;
  }
  const std::string_view digits = path.substr(found + kStem.size());
  int minor = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  return end.ec == std::errc{} && minor >= 0 && minor < 256 ? 0x300 | minor : 0;
}

/// Checks sizes that later code assumes to be small.
bool plausible(const PythonLayout& layout) {
  const bool bounded = std::ranges::all_of(kFields, [&layout](auto field) {
    return layout.*field >= -1 && layout.*field <= kLargestOffset;
  });
  return bounded && layout.frame_locals <= 512 && layout.string_ascii <= 64 &&
         layout.string_state <= layout.string_ascii - 4 &&
         layout.string_length <= layout.string_ascii - 8 && layout.keys_index <= 48 &&
         layout.type_name <= layout.type_dict_offset &&
         layout.type_flags <= layout.type_dict_offset && layout.object_header == 16 &&
         layout.frame_code < layout.frame_locals && layout.frame_previous < layout.frame_locals &&
         layout.frame_instruction < layout.frame_locals && layout.frame_owner < layout.frame_locals;
}

/// The version's row, overwritten with the interpreter's own offsets.
std::optional<PythonLayout> self_described(RemoteMemory& memory, RemoteAddress runtime,
                                           std::string& problem) {
  std::array<std::byte, kDebugOffsetsBytes> block{};
  if (!memory.read(runtime, block)) {
    problem = "_PyRuntime is not readable";
    return std::nullopt;
  }
  const auto word = [&block](std::int64_t position) {
    std::uint64_t value = 0;
    std::memcpy(&value, block.data() + position, sizeof value);
    return value;
  };
  const auto version = static_cast<std::int32_t>(word(8) >> 16U);
  if (word(16) != 0) {
    problem = fmt::format(
        "free-threaded CPython {}t: its objects have another layout, Python frames are not read",
        spelled(version));
    return std::nullopt;
  }
  const PythonLayout* const row = python_layout(version);
  const PythonLayout* const positions = python_debug_positions(version);
  if (row == nullptr || positions == nullptr) {
    problem =
        fmt::format("CPython {} is not known (known are {})", spelled(version), known_versions());
    return std::nullopt;
  }
  PythonLayout layout = *row;
  for (const auto field : kFields) {
    const std::int64_t position = positions->*field;
    if (position >= 0 && position + 8 <= static_cast<std::int64_t>(block.size())) {
      const std::uint64_t offset = word(position);
      layout.*field =
          offset <= kLargestOffset ? static_cast<std::int64_t>(offset) : kLargestOffset + 1;
    }
  }
  if (!plausible(layout)) {
    problem =
        fmt::format("CPython {} describes a memory layout that makes no sense", spelled(version));
    return std::nullopt;
  }
  return layout;
}

/// Objects that may define _PyRuntime: libpython, then files named python, then the first mapped
/// file.
std::vector<const Mapping*> candidates(const Maps& maps) {
  std::vector<const Mapping*> found;
  std::set<std::string_view> seen;
  const auto add = [&](auto accepts) {
    for (const Mapping& mapping : maps.all()) {
      if (mapping.path.starts_with('/') && accepts(base::file_name(mapping.path)) &&
          seen.insert(mapping.path).second) {
        found.push_back(&mapping);
      }
    }
  };
  add([](std::string_view name) { return name.starts_with("libpython"); });
  add([](std::string_view name) { return name.starts_with("python"); });
  const auto first = std::ranges::find_if(
      maps.all(), [](const Mapping& mapping) { return mapping.path.starts_with('/'); });
  if (first != maps.all().end() && seen.insert(first->path).second) {
    found.push_back(&*first);
  }
  return found;
}

std::int32_t version_hint(Target& target, const Mapping& mapping, const LoadedObject& object) {
  if (const auto address = object.file->symbol("Py_Version")) {
    if (const auto hex = target.memory().get<std::uint64_t>(object.bias + *address)) {
      return static_cast<std::int32_t>((*hex & 0xffffffffU) >> 16U);
    }
  }
  if (const std::int32_t named = version_in(base::file_name(mapping.path)); named != 0) {
    return named;
  }
  for (const Mapping& other : target.maps().all()) {  // …/lib/python3.10/lib-dynload/…
    if (const std::int32_t named = version_in(other.path); named != 0) {
      return named;
    }
  }
  return 0;
}

bool looks_like_python(std::string_view file_name) {
  return file_name.starts_with("libpython3") || file_name.starts_with("libpython2") ||
         file_name.starts_with("python3") || file_name.starts_with("python2") ||
         file_name.starts_with("pypy") || file_name == "python";
}

/// The lists must be plausible: at least one thread, each with a possible tid.
bool has_threads(RemoteMemory& memory, const PythonHome& home, std::string& problem) {
  if (memory
          .get<RemoteAddress>(home.runtime +
                              static_cast<RemoteAddress>(home.layout.runtime_interpreters))
          .value_or(0) == 0) {
    problem = fmt::format("CPython {} has not started or has ended its interpreter", home.version);
    return false;
  }
  const auto threads = python_threads(memory, home);
  const auto known = std::ranges::count_if(
      threads, [](const PythonThread& thread) { return thread.state.inner_tid != 0; });
  if (known == 0) {
    problem = fmt::format(
        "CPython {} does not have the memory layout of its version (built with Py_TRACE_REFS?), "
        "Python frames are not read",
        home.version);
    return false;
  }
  return true;
}

}  // namespace

std::optional<PythonLayout> layout_of_runtime(RemoteMemory& memory, RemoteAddress runtime,
                                              std::int32_t version, std::string& problem) {
  std::array<char, kCookie.size()> cookie{};
  if (memory.read(runtime, std::as_writable_bytes(std::span(cookie))) &&
      std::string_view(cookie.data(), cookie.size()) == kCookie) {
    return self_described(memory, runtime, problem);
  }
  if (version == 0) {
    problem = "a CPython of unknown version";
    return std::nullopt;
  }
  const PythonLayout* const row = python_layout(version);
  if (row == nullptr) {
    problem =
        fmt::format("CPython {} is not known (known are {})", spelled(version), known_versions());
    return std::nullopt;
  }
  return *row;
}

std::optional<PythonHome> find_python(Target& target, std::string& problem) {
  problem.clear();
  std::string suspect;
  for (const Mapping* const mapping : candidates(target.maps())) {
    const std::string_view name = base::file_name(mapping->path);
    const auto object = target.object_at(mapping->start);
    const auto symbol = object ? object->file->symbol("_PyRuntime") : std::nullopt;
    if (!symbol) {
      if (looks_like_python(name)) {
        suspect = !object
                      ? fmt::format("{} cannot be opened, so the interpreter is not found", name)
                      : fmt::format("{} has no symbol _PyRuntime: not a CPython from {}", name,
                                    known_versions());
      }
      continue;
    }
    PythonHome home;
    home.runtime = object->bias + *symbol;
    const auto layout = layout_of_runtime(target.memory(), home.runtime,
                                          version_hint(target, *mapping, *object), problem);
    if (!layout) {
      return std::nullopt;
    }
    home.layout = *layout;
    home.version = spelled(layout->version);
    if (!has_threads(target.memory(), home, problem)) {
      return std::nullopt;
    }
    if (const auto secret = object->file->symbol("_Py_HashSecret")) {
      if (const auto key =
              target.memory().get<std::array<std::uint64_t, 2>>(object->bias + *secret)) {
        home.hash_secret = {(*key)[0], (*key)[1]};
      }
    }
    return home;
  }
  problem = suspect;
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
