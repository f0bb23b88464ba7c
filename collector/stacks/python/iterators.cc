// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/iterators.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/attributes.h"
#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostIteratorSlots = 12;  // loops and with blocks around one line
constexpr std::uint64_t kMostListed = 32;       // more items are data
constexpr std::size_t kLongestItem = 48;        // characters of one
constexpr std::int64_t kMostLocalsOfLoop = 4096;
constexpr std::int64_t kMostIterated = std::int64_t{1} << 48U;

// PyTypeObject.tp_iternext: the slots before it have not moved since 3.8.
constexpr std::int64_t kTypeNext = 224;

/// The first slot of a frame's value stack; 0 = unavailable.
RemoteAddress value_stack(PythonObjects& objects, RemoteAddress frame, RemoteAddress code) {
  const PythonLayout& layout = objects.layout();
  RemoteMemory& memory = objects.memory();
  if (layout.version < kVersion311) {
    constexpr RemoteAddress kValueStack = 64;  // f_valuestack
    return pointer(memory, frame + kValueStack);
  }
  const RemoteAddress names = pointer(memory, at(code, layout.code_local_names));
  const auto count =
      names == 0 ? std::nullopt : memory.get<std::int64_t>(at(names, layout.object_size));
  const bool sane = count && *count >= 0 && *count <= kMostLocalsOfLoop;
  return sane ? at(frame, layout.frame_locals + 8 * *count) : 0;
}

bool is_iteration_count(std::optional<std::int64_t> number) {
  return number && *number >= 0 && *number < kMostIterated;
}

}  // namespace

RemoteAddress IterationReader::field(RemoteAddress object, int index) {
  return pointer(objects_.memory(),
                 at(object, objects_.layout().object_header + 8 * std::int64_t{index}));
}

std::optional<std::int64_t> IterationReader::number(RemoteAddress object, int index) {
  return objects_.memory().get<std::int64_t>(
      at(object, objects_.layout().object_header + 8 * std::int64_t{index}));
}

/// Its type is a type object with a tp_iternext. That of a class without `__next__` raises an
/// error: type() gives it to every class.
bool IterationReader::is_iterator(RemoteAddress object) {
  RemoteMemory& memory = objects_.memory();
  const RemoteAddress type = objects_.type_of(object);
  const RemoteAddress meta = objects_.type_of(type);
  const auto flags =
      meta == 0 ? std::nullopt : memory.get<std::uint64_t>(at(meta, objects_.layout().type_flags));
  if (!flags || (*flags & kTypeSubclass) == 0 || pointer(memory, at(type, kTypeNext)) == 0) {
    return false;
  }
  return (objects_.flags_of_type(type) & kHeapType) == 0 ||
         Attributes(objects_).in_class(type, "__next__").has_value();
}

std::string IterationReader::text_of_code(RemoteAddress code, std::int64_t offset) {
  const RemoteAddress text = pointer(objects_.memory(), at(code, offset));
  return base::printable(objects_.string(text, 512).value_or(""));
}

RemoteAddress IterationReader::local(RemoteAddress frame, RemoteAddress code,
                                     std::string_view name) {
  const PythonLayout& layout = objects_.layout();
  RemoteMemory& memory = objects_.memory();
  const auto names = objects_.elements(pointer(memory, at(code, layout.code_local_names)), 64);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (objects_.string(names[i], 64) == name) {
      const auto slot = at(frame, layout.frame_locals + 8 * static_cast<std::int64_t>(i));
      return untagged(pointer(memory, slot), layout.version);
    }
  }
  return 0;
}

Iteration IterationReader::read_range(RemoteAddress iterator) {
  Iteration out{.over = "range"};
  if (objects_.layout().version < kVersion312) {  // index, start, step, len
    const auto index = number(iterator, 0);
    const auto length = number(iterator, 3);
    if (is_iteration_count(index) && is_iteration_count(length) && *index <= *length) {
      out.done = index;
      out.left = *length - *index;
    }
  } else if (const auto left = number(iterator, 2); is_iteration_count(left)) {  // start, step, len
    out.left = left;
  }
  return out;
}

std::vector<std::string> IterationReader::names_in(RemoteAddress container) {
  if (length_of(objects_, container).value_or(kMostListed + 1) > kMostListed) {
    return {};
  }
  const auto all =
      items_of(objects_, container, kMostListed).value_or(std::vector<RemoteAddress>{});
  objects_.expect(all);
  std::vector<std::string> out;
  for (const RemoteAddress item : all) {
    const auto pair = objects_.elements(item, 1);
    const RemoteAddress name = pair.empty() ? item : pair.front();
    const std::uint64_t flags = objects_.type_flags(name);
    if ((flags & (kStringSubclass | kIntSubclass)) == 0) {
      return {};
    }
    out.push_back(objects_.repr(name, {.text = kLongestItem}));
  }
  return out;
}

Iteration IterationReader::read_sequence(RemoteAddress iterator, std::string_view kind) {
  Iteration out{.over = std::string(kind)};
  const auto index = number(iterator, 0);
  const RemoteAddress sequence = field(iterator, 1);  // 0: it is exhausted
  if (sequence == 0 || !objects_.type_name(sequence).ends_with(kind)) {
    return out;
  }
  out.items = names_in(sequence);
  const auto length =
      objects_.memory().get<std::int64_t>(at(sequence, objects_.layout().object_size));
  if (is_iteration_count(index) && is_iteration_count(length) && *index <= *length) {
    out.done = index;
    out.left = *length - *index;
  }
  return out;
}

/// For dicts and sets: the size at the start of the loop, and the remaining items.
Iteration IterationReader::read_table(RemoteAddress iterator, std::string_view kind, int left_at) {
  constexpr int kUsed = 1;
  Iteration out{.over = std::string(kind)};
  const bool at_end = field(iterator, 0) == 0;
  const auto used = number(iterator, kUsed);
  const auto left = number(iterator, left_at);
  if (!at_end && is_iteration_count(used) && is_iteration_count(left) && *left <= *used) {
    out.done = *used - *left;
    out.left = left;
    out.items = names_in(field(iterator, 0));
  }
  return out;
}

/// zip and map end with the shortest of their iterables.
Iteration IterationReader::read_shortest(RemoteAddress tuple, std::string_view kind, int depth) {
  Iteration shortest;
  bool first = true;
  for (const RemoteAddress each : objects_.elements(tuple, 8)) {
    Iteration one = read(each, depth + 1);
    if (!one.left || one.loose) {
      return {.over = std::string(kind)};
    }
    if (first || *one.left < *shortest.left) {
      shortest = std::move(one);
    }
    first = false;
  }
  return first ? Iteration{.over = std::string(kind)} : shortest;
}

Iteration IterationReader::read_slice(RemoteAddress iterator, int depth) {
  const RemoteAddress inner = field(iterator, 0);
  const auto stop = number(iterator, 2);
  const auto step = number(iterator, 3);
  const auto taken = number(iterator, 4);
  Iteration out = read(inner, depth + 1);
  if (step != 1 || !is_iteration_count(taken) || !out.left) {
    return {.over = out.over};
  }
  out.done = taken;
  if (stop && *stop >= *taken) {
    out.left = std::min(*out.left, *stop - *taken);
  }
  return out;
}

Iteration IterationReader::read_enumerate(RemoteAddress iterator, int depth) {
  Iteration out = read(field(iterator, 1), depth + 1);
  const auto index = number(iterator, 0);
  if ((!out.done || out.loose) && is_iteration_count(index)) {
    out.index = index;
  }
  return out;
}

Iteration IterationReader::read_generator(RemoteAddress generator, int depth) {
  const PythonLayout& layout = objects_.layout();
  const RemoteAddress frame = generator_frame(objects_, generator);
  if (frame == 0) {
    return {.over = "generator"};
  }
  const RemoteAddress code = code_of(frame);
  const bool qualified = layout.code_qualname >= 0;
  const std::string name = text_of_code(code, qualified ? layout.code_qualname : layout.code_name);
  const std::string file = text_of_code(code, layout.code_filename);
  std::vector<Iteration> loops = loops_at(frame, code, depth + 1);
  if (!loops.empty() && file.ends_with("tqdm/std.py") && name.ends_with("__iter__")) {
    return std::move(loops.back());  // it yields the items of the inner loop
  }
  Iteration out{.over = name.empty() ? "generator" : fmt::format("generator {}", name)};
  if (loops.size() == 1) {
    out.done = loops.back().done;
    out.left = loops.back().left;
    out.loose = true;
  }
  return out;
}

Iteration IterationReader::read(RemoteAddress iterator, int depth) {
  const std::string type = objects_.type_name(iterator);
  if (depth > kDeepestIterator || type.empty() || --budget_ < 0) {
    return {};
  }
  if (type == "range_iterator") {
    return read_range(iterator);
  }
  if (type == "list_iterator" || type == "tuple_iterator") {
    return read_sequence(iterator, type == "list_iterator" ? "list" : "tuple");
  }
  if (type == "dict_keyiterator" || type == "dict_valueiterator" || type == "dict_itemiterator") {
    constexpr int kLeft = 4;  // dict, used, position, result, left
    return read_table(iterator, "dict", kLeft);
  }
  if (type == "set_iterator") {
    constexpr int kLeft = 3;  // set, used, position, left
    return read_table(iterator, "set", kLeft);
  }
  if (type == "enumerate") {
    return read_enumerate(iterator, depth);
  }
  if (type == "zip" || type == "map") {
    return read_shortest(field(iterator, type == "zip" ? 1 : 0), type, depth);
  }
  if (type == "itertools.islice") {
    return read_slice(iterator, depth);
  }
  if (type == "generator") {
    return read_generator(iterator, depth);
  }
  if (type.ends_with("_SingleProcessDataLoaderIter") ||
      type.ends_with("_MultiProcessingDataLoaderIter")) {
    return read_data_loader(iterator, depth);
  }
  return {.over = type};
}

IterationReader::Blocks IterationReader::blocks_at(RemoteAddress frame, RemoteAddress code) {
  const PythonLayout& layout = objects_.layout();
  RemoteMemory& memory = objects_.memory();
  Blocks out;
  const RemoteAddress first = value_stack(objects_, frame, code);
  for (std::size_t i = 0; first != 0 && i < kMostIteratorSlots; ++i) {
    const RemoteAddress value = untagged(pointer(memory, first + 8 * i), layout.version);
    const std::string type = value == 0 ? std::string() : objects_.type_name(value);
    if (i == 0 && (type == "list" || type == "dict" || type == "set")) {
      continue;  // the result of a comprehension with a frame of its own
    }
    if (type == "method" || type == "builtin_function_or_method") {
      out.exits.push_back(value);
      continue;
    }
    if (type.empty() || !is_iterator(value)) {
      break;
    }
    out.iterators.push_back(value);
  }
  return out;
}

std::vector<Iteration> IterationReader::loops_at(RemoteAddress frame, RemoteAddress code,
                                                 int depth) {
  std::vector<Iteration> loops;
  for (const RemoteAddress iterator : blocks_at(frame, code).iterators) {
    loops.push_back(read(iterator, depth));
  }
  return loops;
}

RemoteAddress IterationReader::code_of(RemoteAddress frame) {
  const PythonLayout& layout = objects_.layout();
  return untagged(pointer(objects_.memory(), at(frame, layout.frame_code)), layout.version);
}

bool IterationReader::still_runs(RemoteAddress frame, RemoteAddress code) {
  const PythonLayout& layout = objects_.layout();
  RemoteAddress now = 0;
  return objects_.memory().read_now(at(frame, layout.frame_code),
                                    std::as_writable_bytes(std::span(&now, 1))) &&
         untagged(now, layout.version) == code;
}

std::vector<Iteration> IterationReader::loops_of(RemoteAddress frame, RemoteAddress code) {
  if (code == 0 || code_of(frame) != code) {
    return {};
  }
  budget_ = kMostIteratorsRead;
  std::vector<Iteration> loops = loops_at(frame, code, 0);
  return loops.empty() || still_runs(frame, code) ? loops : std::vector<Iteration>{};
}

}  // namespace ddpdoctor::stacks
