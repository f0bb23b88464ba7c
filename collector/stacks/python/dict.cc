// SPDX-License-Identifier: Apache-2.0
// Dicts and instance attributes of PythonObjects. A dict is a hash index over entries in insertion
// order. Instances of one class share the keys and own only the values ("split"); since 3.11 they
// need no dict object.
#include <algorithm>
#include <array>
#include <bit>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/objects.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::uint64_t kInlineValues = 1ULL << 2U;  // 3.13+: values follow the object
constexpr std::uint64_t kManagedDict = 1ULL << 4U;   // 3.11+: the dict pointer precedes the object

// Words before the object, Include/internal/pycore_object.h.
constexpr RemoteAddress kManagedDictBefore = 24;
constexpr RemoteAddress kValuesBefore = 32;  // 3.11 only

// Sizes are untrusted; sys.modules of a large job has some thousands of entries. Only the first
// entries of a larger dict are read.
constexpr std::uint64_t kMostDictSlots = 1ULL << 26U;
constexpr std::uint64_t kMostEntries = 1ULL << 17U;
constexpr std::uint64_t kEntriesPerRead = 1024;
constexpr int kMostProbes = 512;

/// SipHash of Python/pyhash.c: 2-4 rounds up to 3.10, 1-3 since 3.11
/// (https://www.aumasson.jp/siphash/siphash.pdf).
class SipHash {
 public:
  SipHash(std::uint64_t first, std::uint64_t second)
      : v_{first ^ 0x736f6d6570736575ULL, second ^ 0x646f72616e646f6dULL,
           first ^ 0x6c7967656e657261ULL, second ^ 0x7465646279746573ULL} {}

  std::uint64_t digest(std::string_view text, int block_rounds, int final_rounds) {
    std::size_t i = 0;
    for (; i + 8 <= text.size(); i += 8) {
      absorb(word(text.substr(i, 8)), block_rounds);
    }
    absorb(word(text.substr(i)) | (static_cast<std::uint64_t>(text.size()) << 56U), block_rounds);
    v_[2] ^= 0xffU;
    rounds(final_rounds);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  static std::uint64_t word(std::string_view text) {
    std::uint64_t value = 0;
    std::memcpy(&value, text.data(), text.size());
    return value;
  }

  void absorb(std::uint64_t block, int count) {
    v_[3] ^= block;
    rounds(count);
    v_[0] ^= block;
  }

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      half(0, 1, 2, 3, 13, 16);
      half(2, 1, 0, 3, 17, 21);
    }
  }

  void half(std::size_t a, std::size_t b, std::size_t c, std::size_t d, int s, int t) {
    v_[a] += v_[b];
    v_[c] += v_[d];
    v_[b] = std::rotl(v_[b], s) ^ v_[a];
    v_[d] = std::rotl(v_[d], t) ^ v_[c];
    v_[a] = std::rotl(v_[a], 32);
  }

  std::array<std::uint64_t, 4> v_;
};

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0; });
}

/// The value of hash(str) for ASCII text.
std::uint64_t string_hash(std::string_view text, std::uint64_t first, std::uint64_t second,
                          std::int32_t version) {
  if (text.empty()) {
    return 0;
  }
  const bool newer = version >= kVersion311;
  const std::uint64_t hash = SipHash(first, second).digest(text, newer ? 1 : 2, newer ? 3 : 4);
  return hash == ~0ULL ? ~0ULL - 1 : hash;
}

}  // namespace

void PythonObjects::set_hash_secret(std::uint64_t first, std::uint64_t second) {
  hash_secret_ = {first, second};
}

std::optional<PythonObjects::Keys> PythonObjects::keys_at(RemoteAddress address) {
  std::array<std::byte, 48> header{};
  const auto wanted = std::span(header).first(static_cast<std::size_t>(layout_.keys_index));
  if (address == 0 || !memory_.read(address, wanted)) {
    return std::nullopt;
  }
  Keys keys;
  std::uint64_t index_bytes = 0;
  keys.stride = 24;  // hash, key, value
  if (layout_.version >= kVersion311) {
    // dk_log2_size, dk_log2_index_bytes and dk_kind follow in this order.
    const auto* const bytes = header.data() + layout_.keys_size;
    const auto log_size = std::to_integer<unsigned>(bytes[0]);
    const auto log_index_bytes = std::to_integer<unsigned>(bytes[1]);
    if (log_size > 26 || log_index_bytes > 29) {
      return std::nullopt;
    }
    keys.size = 1ULL << log_size;
    index_bytes = 1ULL << log_index_bytes;
    if (std::to_integer<int>(bytes[2]) != 0) {
      keys.stride = 16;  // only str keys, which contain their hash
    }
    keys.index_width = log_size < 8 ? 1 : (log_size < 16 ? 2 : 4);
  } else {
    std::memcpy(&keys.size, header.data() + layout_.keys_size, sizeof keys.size);
    if (keys.size > kMostDictSlots || !std::has_single_bit(keys.size)) {
      return std::nullopt;
    }
    keys.index_width = keys.size <= 0xff ? 1 : (keys.size <= 0xffff ? 2 : 4);
    index_bytes = keys.size * keys.index_width;
  }
  std::memcpy(&keys.count, header.data() + layout_.keys_count, sizeof keys.count);
  if (keys.count > keys.size) {
    return std::nullopt;
  }
  keys.index = at(address, layout_.keys_index);
  keys.entries = keys.index + index_bytes;
  return keys;
}

PythonObjects::Pairs PythonObjects::entries(const Keys& keys, RemoteAddress values,
                                            std::size_t limit) {
  std::uint64_t count = std::min(keys.count, kMostEntries);
  if (values != 0 && layout_.version >= kVersion313) {  // the first byte is the capacity
    count = std::min<std::uint64_t>(count, memory_.get<std::uint8_t>(values).value_or(0));
  }
  Pairs pairs;
  std::vector<std::byte> block;
  std::vector<RemoteAddress> split;
  for (std::uint64_t first = 0; first < count && pairs.size() < limit; first += kEntriesPerRead) {
    const std::uint64_t here = std::min(kEntriesPerRead, count - first);
    block.resize(here * keys.stride);
    split.resize(values != 0 ? here : 0);
    if (!memory_.read(keys.entries + first * keys.stride, block) ||
        (values != 0 && !memory_.read(at(values, layout_.values_first) + 8 * first,
                                      std::as_writable_bytes(std::span(split))))) {
      return {};
    }
    for (std::uint64_t i = 0; i < here && pairs.size() < limit; ++i) {
      std::array<RemoteAddress, 2> entry{};
      std::memcpy(entry.data(), block.data() + (i + 1) * keys.stride - sizeof entry, sizeof entry);
      const RemoteAddress value = values != 0 ? split[i] : entry[1];
      if (entry[0] != 0 && value != 0) {
        pairs.emplace_back(entry[0], value);
      }
    }
  }
  return pairs;
}

PythonObjects::Pairs PythonObjects::items(RemoteAddress dict, std::size_t limit) {
  if ((type_behind(dict).flags & kDictSubclass) == 0) {
    return {};
  }
  const auto keys_address = memory_.get<RemoteAddress>(at(dict, layout_.dict_keys)).value_or(0);
  const auto values = memory_.get<RemoteAddress>(at(dict, layout_.dict_values)).value_or(0);
  const auto keys = keys_at(keys_address);
  return keys ? entries(*keys, values, limit) : Pairs{};
}

std::optional<RemoteAddress> PythonObjects::item(RemoteAddress dict, std::string_view name) {
  if ((type_behind(dict).flags & kDictSubclass) == 0) {
    return std::nullopt;
  }
  const auto keys_address = memory_.get<RemoteAddress>(at(dict, layout_.dict_keys)).value_or(0);
  const auto values = memory_.get<RemoteAddress>(at(dict, layout_.dict_values)).value_or(0);
  return find(keys_address, values, name);
}

std::optional<RemoteAddress> PythonObjects::find(RemoteAddress keys_address, RemoteAddress values,
                                                 std::string_view name) {
  const auto keys = keys_at(keys_address);
  if (!keys) {
    return std::nullopt;
  }
  const auto hash = hash_of(name, *keys);
  return hash ? probe(*keys, values, name, *hash) : scan(*keys, values, name);
}

bool PythonObjects::is_named(RemoteAddress key, std::string_view name) {
  const auto characters = memory_.get<std::uint64_t>(at(key, layout_.string_length));
  if (!characters || *characters > name.size() || *characters * 4 < name.size()) {
    return false;
  }
  return string(key, name.size() + 1) == name;
}

std::optional<RemoteAddress> PythonObjects::scan(const Keys& keys, RemoteAddress values,
                                                 std::string_view name) {
  for (const auto& [key, value] : entries(keys, values, kMostEntries)) {
    if (is_named(key, name)) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> PythonObjects::hash_of(std::string_view name, const Keys& keys) {
  if (!hash_secret_ || !is_ascii(name)) {
    return std::nullopt;
  }
  const auto [first, second] = *hash_secret_;
  if (!hash_proven_) {
    const Pairs some = entries(keys, 0, 1);
    const auto text = some.empty() ? std::nullopt : string(some[0].first, 256);
    if (!text || text->empty() || text->size() == 256 || !is_ascii(*text)) {
      return std::nullopt;  // nothing learned: try with another dict
    }
    const auto stored = memory_.get<std::uint64_t>(at(some[0].first, layout_.string_hash));
    hash_proven_ = stored == string_hash(*text, first, second, layout_.version);
  }
  if (!*hash_proven_) {
    return std::nullopt;
  }
  return string_hash(name, first, second, layout_.version);
}

std::optional<RemoteAddress> PythonObjects::probe(const Keys& keys, RemoteAddress values,
                                                  std::string_view name, std::uint64_t hash) {
  const std::uint64_t mask = keys.size - 1;
  const std::uint64_t empty = keys.index_width == 8 ? ~0ULL : (1ULL << (8 * keys.index_width)) - 1;
  std::uint64_t perturb = hash;
  std::uint64_t slot = hash & mask;
  for (int i = 0; i < kMostProbes; ++i) {
    std::uint64_t position = 0;
    if (!memory_.read(keys.index + slot * keys.index_width,
                      std::as_writable_bytes(std::span(&position, 1)).first(keys.index_width)) ||
        position == empty) {
      return std::nullopt;
    }
    if (position < keys.count) {
      const RemoteAddress entry = keys.entries + (position + 1) * keys.stride - 16;
      const auto key = memory_.get<RemoteAddress>(entry).value_or(0);
      if (key != 0 && memory_.get<std::uint64_t>(at(key, layout_.string_hash)) == hash &&
          is_named(key, name)) {
        const RemoteAddress value = entry_value(keys, values, position);
        return value != 0 ? std::optional(value) : std::nullopt;
      }
    }
    perturb >>= 5U;
    slot = (slot * 5 + perturb + 1) & mask;
  }
  return std::nullopt;
}

RemoteAddress PythonObjects::entry_value(const Keys& keys, RemoteAddress values,
                                         std::uint64_t position) {
  if (values == 0) {
    return memory_.get<RemoteAddress>(keys.entries + (position + 1) * keys.stride - 8).value_or(0);
  }
  if (layout_.version >= kVersion313 && position >= memory_.get<std::uint8_t>(values).value_or(0)) {
    return 0;
  }
  return memory_.get<RemoteAddress>(at(values, layout_.values_first) + 8 * position).value_or(0);
}

RemoteAddress PythonObjects::instance_dict(RemoteAddress object, const Type& type) {
  if ((type.flags & kManagedDict) != 0 && layout_.version >= kVersion311) {
    const auto dict = memory_.get<RemoteAddress>(object - kManagedDictBefore).value_or(0);
    // 3.12 marks a pointer to values with the lowest bit.
    return layout_.version == kVersion312 && (dict & 1U) != 0 ? 0 : dict;
  }
  std::int64_t offset = type.dict_offset;
  // Negative offsets count from the end of a variable-sized object.
  if (offset < 0 && type.item_size > 0) {
    const auto count = memory_.get<std::int64_t>(at(object, layout_.object_size)).value_or(0);
    const bool likely = count > -INT32_MAX && count < INT32_MAX && type.item_size <= 4096 &&
                        type.basic_size >= 0 && type.basic_size < INT32_MAX && offset > -INT32_MAX;
    if (!likely) {
      return 0;
    }
    offset += (type.basic_size + std::abs(count) * type.item_size + 7) / 8 * 8;
  }
  if (offset <= 0) {
    return 0;
  }
  return memory_.get<RemoteAddress>(at(object, offset)).value_or(0);
}

RemoteAddress PythonObjects::instance_values(RemoteAddress object, const Type& type) {
  if ((type.flags & kManagedDict) == 0) {
    return 0;
  }
  if (layout_.version == kVersion311) {
    return memory_.get<RemoteAddress>(object - kValuesBefore).value_or(0);
  }
  if (layout_.version == kVersion312) {
    const auto tagged = memory_.get<RemoteAddress>(object - kManagedDictBefore).value_or(0);
    return (tagged & 1U) != 0 ? tagged + 1 : 0;
  }
  if (layout_.version >= kVersion313 && (type.flags & kInlineValues) != 0) {
    const RemoteAddress values = at(object, type.basic_size);
    // capacity, size, embedded, valid: one byte each.
    const auto header = memory_.get<std::array<std::uint8_t, 4>>(values);
    return header && (*header)[3] != 0 ? values : 0;
  }
  return 0;
}

std::optional<RemoteAddress> PythonObjects::attribute(RemoteAddress object, std::string_view name) {
  const Type& type = type_behind(object);
  if (type.name.empty()) {
    return std::nullopt;
  }
  if (const RemoteAddress dict = instance_dict(object, type); dict != 0) {
    return item(dict, name);
  }
  const RemoteAddress values = instance_values(object, type);
  return values != 0 ? find(type.shared_keys, values, name) : std::nullopt;
}

PythonObjects::Pairs PythonObjects::own_attributes(RemoteAddress object, std::size_t limit) {
  const Type& type = type_behind(object);
  if (type.name.empty()) {
    return {};
  }
  Pairs pairs;
  if (const RemoteAddress dict = instance_dict(object, type); dict != 0) {
    pairs = items(dict, limit);
  } else if (const RemoteAddress values = instance_values(object, type); values != 0) {
    const auto keys = keys_at(type.shared_keys);
    pairs = keys ? entries(*keys, values, limit) : Pairs{};
  }
  std::vector<RemoteAddress> all;
  for (const auto& [name, value] : pairs) {
    all.push_back(name);
    all.push_back(value);
  }
  expect(all);
  return pairs;
}

}  // namespace ddpdoctor::stacks
