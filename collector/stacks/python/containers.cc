// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/containers.h"

#include <algorithm>
#include <array>
#include <span>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"

namespace ddpdoctor::stacks {

namespace {

// No len() can be larger, because memory could not hold it.
constexpr std::uint64_t kMostItems = 1ULL << 40U;
constexpr std::uint64_t kMostSlots = 1ULL << 20U;  // of a set whose items are read
constexpr std::size_t kMostDigits = 4;

/// Checks a built-in type by name; subclasses written in Python have other names and are not
/// resolved.
bool is_set(std::string_view type) {
  return type == "set" || type == "frozenset";
}

bool is_deque(std::string_view type) {
  return type == "collections.deque";
}

std::optional<std::uint64_t> plausible_count(std::optional<std::uint64_t> count) {
  return count && *count < kMostItems ? count : std::nullopt;
}

std::optional<std::vector<RemoteAddress>> set_items(PythonObjects& objects, RemoteAddress set,
                                                    std::size_t limit) {
  RemoteMemory& memory = objects.memory();
  const auto mask = memory.get<std::uint64_t>(at(set, value_layout::kSetMask));
  const RemoteAddress table = pointer(memory, at(set, value_layout::kSetTable));
  if (!mask || *mask >= kMostSlots) {
    return std::nullopt;
  }
  struct Entry {
    RemoteAddress key;
    std::int64_t hash;
  };
  std::vector<Entry> entries(*mask + 1);
  if (!memory.read(table, std::as_writable_bytes(std::span(entries)))) {
    return std::nullopt;
  }
  std::vector<RemoteAddress> out;
  for (const Entry& entry : entries) {
    // A removed entry has the dummy key with hash -1, which no object has.
    if (entry.key != 0 && entry.hash != -1 && out.size() < limit) {
      out.push_back(entry.key);
    }
  }
  return out;
}

std::optional<std::vector<RemoteAddress>> deque_items(PythonObjects& objects, RemoteAddress deque,
                                                      std::size_t limit) {
  RemoteMemory& memory = objects.memory();
  const std::uint64_t count = std::min<std::uint64_t>(objects.claimed_size(deque), limit);
  RemoteAddress block = pointer(memory, at(deque, value_layout::kDequeLeftBlock));
  auto index = memory.get<std::int64_t>(at(deque, value_layout::kDequeLeftIndex)).value_or(-1);
  if (index < 0 || index > value_layout::kBlockLength) {
    return std::nullopt;
  }
  std::vector<RemoteAddress> out;
  while (out.size() < count) {
    if (index == value_layout::kBlockLength) {
      block = pointer(memory, at(block, value_layout::kBlockNext));
      index = 0;
    }
    const auto item = memory.get<RemoteAddress>(at(block, value_layout::kBlockItems + (8 * index)));
    if (block == 0 || !item) {
      return std::nullopt;
    }
    out.push_back(*item);
    ++index;
  }
  return out;
}

/// Sign and 30-bit digits, lowest first; nothing if there are more than four.
struct Digits {
  bool negative = false;
  std::uint64_t count = 0;
  std::array<std::uint32_t, kMostDigits> digit{};
};

std::optional<Digits> digits_of(PythonObjects& objects, RemoteAddress object) {
  const PythonLayout& layout = objects.layout();
  if ((objects.type_flags(object) & kIntSubclass) == 0) {
    return std::nullopt;
  }
  const auto tag = objects.memory().get<std::int64_t>(at(object, layout.object_size));
  if (!tag) {
    return std::nullopt;
  }
  const bool tagged = layout.version >= kVersion312;
  const auto bits = static_cast<std::uint64_t>(*tag);
  Digits out;
  out.negative = tagged ? (bits & 3U) == 2 : *tag < 0;
  out.count = tagged ? bits >> 3U : (*tag < 0 ? 0 - bits : bits);
  const auto wanted = std::span(out.digit).first(std::min<std::uint64_t>(out.count, kMostDigits));
  if (!wanted.empty() &&
      !objects.memory().read(at(object, layout.int_digits), std::as_writable_bytes(wanted))) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> length_of(PythonObjects& objects, RemoteAddress object) {
  RemoteMemory& memory = objects.memory();
  const std::uint64_t flags = objects.type_flags(object);
  if ((flags & (kTupleSubclass | kListSubclass | kBytesSubclass)) != 0) {
    return plausible_count(objects.claimed_size(object));
  }
  if ((flags & kStringSubclass) != 0) {
    return plausible_count(memory.get<std::uint64_t>(at(object, objects.layout().string_length)));
  }
  if ((flags & kDictSubclass) != 0) {
    return plausible_count(memory.get<std::uint64_t>(at(object, value_layout::kDictUsed)));
  }
  const std::string type = objects.type_name(object);
  if (is_set(type)) {
    return plausible_count(memory.get<std::uint64_t>(at(object, value_layout::kSetUsed)));
  }
  if (is_deque(type)) {
    return plausible_count(objects.claimed_size(object));
  }
  if (type == "range") {
    const auto count = objects.integer(pointer(memory, at(object, value_layout::kRangeLength)));
    return count && *count >= 0 ? std::optional(static_cast<std::uint64_t>(*count)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<RemoteAddress>> items_of(PythonObjects& objects, RemoteAddress object,
                                                   std::size_t limit) {
  const std::uint64_t flags = objects.type_flags(object);
  if ((flags & (kTupleSubclass | kListSubclass)) != 0) {
    const auto claimed = std::min<std::uint64_t>(objects.claimed_size(object), limit);
    auto items = objects.elements(object, limit);
    return items.size() == claimed ? std::optional(std::move(items)) : std::nullopt;
  }
  if ((flags & kDictSubclass) != 0) {
    std::vector<RemoteAddress> keys;
    for (const auto& [key, value] : objects.items(object, limit)) {
      keys.push_back(key);
    }
    const auto count = length_of(objects, object).value_or(0);
    return keys.size() == std::min<std::uint64_t>(count, limit) ? std::optional(std::move(keys))
                                                                : std::nullopt;
  }
  const std::string type = objects.type_name(object);
  if (is_set(type)) {
    return set_items(objects, object, limit);
  }
  return is_deque(type) ? deque_items(objects, object, limit) : std::nullopt;
}

std::optional<std::string> integer_text(PythonObjects& objects, RemoteAddress object) {
  const auto digits = digits_of(objects, object);
  if (!digits || digits->count > kMostDigits) {
    return std::nullopt;
  }
  __extension__ using Wide = unsigned __int128;
  Wide magnitude = 0;
  for (std::size_t i = digits->count; i-- > 0;) {
    magnitude = (magnitude << kDigitBits) | digits->digit.at(i);
  }
  std::string text;
  do {
    text += static_cast<char>('0' + static_cast<int>(magnitude % 10));
    magnitude /= 10;
  } while (magnitude != 0);
  text += digits->negative ? "-" : "";
  std::reverse(text.begin(), text.end());
  return text;
}

std::optional<bool> integer_truth(PythonObjects& objects, RemoteAddress object) {
  const auto digits = digits_of(objects, object);
  // 3.12+ stores zero with one digit 0, or with no digits.
  return digits ? std::optional(digits->count > 1 || (digits->count == 1 && digits->digit[0] != 0))
                : std::nullopt;
}

}  // namespace ddpdoctor::stacks
