// SPDX-License-Identifier: Apache-2.0
// Reads torch's flight recorder in the target's memory. The writer holds a mutex that we do not
// take: it increments `next` before it writes an entry and `next_id` after it, so the newest slot
// may be half written, and the oldest may be overwritten during the read.
#include "collector/stacks/torch/flight_recorder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "collector/stacks/torch/recorder_entry.h"

namespace ddpdoctor::stacks {
namespace {

constexpr int kAttempts = 3;
// A larger TORCH_FR_BUFFER_SIZE is not a plausible setting.
constexpr std::uint64_t kMaxRing = 1U << 24;

/// The recorder's own members at one instant.
struct Header {
  bool enabled = false;
  RemoteAddress begin = 0;
  std::uint64_t count = 0;
  std::uint64_t max_entries = 0;
  std::uint64_t next = 0;
  std::uint64_t next_id = 0;
  std::uint64_t epoch = 0;

  bool operator==(const Header&) const = default;
};

template <typename T>
std::optional<T> field(std::span<const std::byte> image, std::size_t offset) {
  T value{};
  if (offset > image.size() || sizeof(T) > image.size() - offset) {
    return std::nullopt;
  }
  std::memcpy(&value, image.data() + offset, sizeof(T));
  return value;
}

std::optional<Header> read_header(RemoteMemory& memory, RemoteAddress recorder,
                                  const TorchLayout& layout) {
  memory.forget();  // current data, not a cached page
  std::vector<std::byte> image(layout.recorder_size);
  if (!memory.read(recorder, image)) {
    return std::nullopt;
  }
  const auto enabled = field<std::uint8_t>(image, layout.enabled);
  const auto begin = field<RemoteAddress>(image, layout.entries);
  const auto end = field<RemoteAddress>(image, layout.entries + sizeof(RemoteAddress));
  const auto max_entries = field<std::uint64_t>(image, layout.max_entries);
  const auto next = field<std::uint64_t>(image, layout.next);
  const auto next_id = field<std::uint64_t>(image, layout.next_id);
  const auto epoch = layout.epoch == TorchLayout::npos ? std::optional<std::uint64_t>(0)
                                                       : field<std::uint64_t>(image, layout.epoch);
  if (!enabled || !begin || !end || !max_entries || !next || !next_id || !epoch) {
    return std::nullopt;
  }
  if (*enabled > 1 || *end < *begin || (*end - *begin) % layout.entry_size != 0 ||
      *max_entries > kMaxRing || *next > *max_entries) {
    return std::nullopt;
  }
  const Header header{.enabled = *enabled == 1,
                      .begin = *begin,
                      .count = (*end - *begin) / layout.entry_size,
                      .max_entries = *max_entries,
                      .next = *next,
                      .next_id = *next_id,
                      .epoch = *epoch};
  if (header.count > header.max_entries) {
    return std::nullopt;
  }
  return header;
}

/// The result of one attempt, newest first.
struct Attempt {
  std::vector<RecorderEntry> entries;
  bool moved = false;  // the target recorded in the meantime
  std::string misfit;  // why the layout must be wrong
};

/// Address of the entry `back` places before the newest one, which precedes `next`; while the
/// vector grows, the newest is the last.
RemoteAddress entry_address(const Header& header, const TorchLayout& layout, std::uint64_t back) {
  const std::uint64_t after_newest =
      header.count == header.max_entries ? header.next % header.count : 0;
  const std::uint64_t slot = (after_newest + 2 * header.count - 1 - back) % header.count;
  return header.begin + slot * layout.entry_size;
}

bool preload(EntryReader& reader, const Header& header, const TorchLayout& layout,
             std::uint64_t count) {
  const RemoteAddress oldest = entry_address(header, layout, count - 1);
  const std::uint64_t until_end =
      std::min(count, header.count - (oldest - header.begin) / layout.entry_size);
  return reader.preload(oldest, until_end) &&
         (count == until_end || reader.preload(header.begin, count - until_end));
}

/// Reads backwards from the newest entry as long as the ids are consecutive.
Attempt walk(EntryReader& reader, const Header& header, const TorchLayout& layout,
             const RecorderLimits& limits) {
  Attempt found;
  const std::uint64_t count = std::min<std::uint64_t>(header.count, limits.entries);
  if (!preload(reader, header, layout, count)) {
    found.misfit = "its entries cannot be read";
    return found;
  }
  found.entries.reserve(count);
  std::uint64_t expected = header.next_id;
  for (std::uint64_t back = 0; back < count; ++back) {
    const RemoteAddress address = entry_address(header, layout, back);
    const auto identity = reader.identity(address);
    if (identity && identity->second < header.epoch && expected == 0) {
      break;  // older than a reset
    }
    if (!identity || expected == 0 || identity->second != header.epoch ||
        identity->first != expected - 1) {
      if (back == 0 && count > 1) {
        continue;  // still being written
      }
      found.misfit = "its entries are not consecutive";
      break;
    }
    --expected;
    auto entry = reader.entry(address);
    if (!entry) {
      found.misfit = fmt::format("entry {} does not look like one", identity->first);
      break;
    }
    if (back < limits.calls) {
      entry->calls = reader.calls(address);
    }
    found.entries.push_back(std::move(*entry));
  }
  return found;
}

/// How many of the newest entries of `before` were certainly unchanged until `after`.
std::uint64_t untouched(const Header& before, const Header& after) {
  if (after.begin != before.begin || after.max_entries != before.max_entries ||
      after.epoch != before.epoch || after.next_id < before.next_id) {
    return 0;
  }
  if (before.count < before.max_entries) {
    // New entries were appended after them.
    return after.count < after.max_entries ? before.count : 0;
  }
  // Two more than were completed: the next one may be half written, and so may the one taken for
  // the newest.
  return before.count - std::min(before.count, after.next_id - before.next_id + 2);
}

Attempt attempt(RemoteMemory& memory, RemoteAddress recorder, const Header& before,
                const TorchLayout& layout, const RecorderLimits& limits) {
  EntryReader reader(memory, layout, limits);
  Attempt found = walk(reader, before, layout, limits);
  const auto after = read_header(memory, recorder, layout);
  if (after && *after == before) {
    return found;
  }
  found.moved = true;
  const std::uint64_t kept = after ? untouched(before, *after) : 0;
  if (found.entries.size() >= kept) {
    found.entries.resize(kept);
    found.misfit.clear();  // it was among the overwritten entries
  }
  return found;
}

/// Entries that are complete (walk() checked that) and have a plausible time.
bool shows_calls(const RecorderReading& reading) {
  constexpr std::int64_t kFrom = 1'400'000'000'000'000'000;  // year 2014, ns
  constexpr std::int64_t kUntil = 4'000'000'000'000'000'000;
  return !reading.entries.empty() &&
         std::ranges::all_of(reading.entries, [](const RecorderEntry& entry) {
           return entry.record.created_ns > kFrom && entry.record.created_ns < kUntil;
         });
}

}  // namespace

RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayout& layout, const RecorderLimits& limits) {
  RecorderReading reading;
  for (int i = 0; i < kAttempts; ++i) {
    const auto header = read_header(memory, recorder, layout);
    if (!header) {
      reading.problem =
          fmt::format("the flight recorder does not look as torch {} lays it out", layout.version);
      reading.misfit = true;
      continue;
    }
    reading.misfit = false;
    if (!header->enabled) {
      reading.problem =
          "the flight recorder is off (TORCH_FR_BUFFER_SIZE=2000 switches it on; it is from torch "
          "2.11 on)";
      return reading;
    }
    Attempt found;
    if (header->count > 0) {
      found = attempt(memory, recorder, *header, layout, limits);
    }
    if (!found.misfit.empty()) {
      reading.problem = "the flight recorder could not be trusted: " + found.misfit;
      reading.misfit = true;
      if (!found.moved) {
        return reading;
      }
      continue;
    }
    if (found.moved && found.entries.empty()) {
      reading.problem = "the flight recorder changed faster than it could be read";
      continue;
    }
    std::ranges::reverse(found.entries);
    reading.entries = std::move(found.entries);
    reading.problem.clear();
    reading.misfit = false;
    reading.read = true;
    return reading;
  }
  return reading;
}

RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayouts& layouts, const RecorderLimits& limits) {
  RecorderReading reading;
  std::vector<const TorchLayout*> tried;
  if (layouts.exact != nullptr) {
    reading = read_flight_recorder(memory, recorder, *layouts.exact, limits);
    if (!reading.misfit) {
      return reading;
    }
    tried.push_back(layouts.exact);
  }
  std::optional<RecorderReading> proven;
  for (const TorchLayout* layout : layouts.others) {
    if (std::ranges::any_of(tried, [layout](const TorchLayout* before) {
          return same_recorder(*before, *layout);
        })) {
      continue;
    }
    tried.push_back(layout);
    RecorderReading other = read_flight_recorder(memory, recorder, *layout, limits);
    if (other.read && shows_calls(other)) {
      if (proven) {
        proven.reset();
        break;  // data that fits two layouts proves neither
      }
      proven = std::move(other);
    } else if (reading.problem.empty() && !other.misfit) {
      reading.problem = other.problem;
    }
  }
  if (proven) {
    return std::move(*proven);
  }
  if (reading.problem.empty()) {
    reading.problem = "the flight recorder is laid out in an unknown way";
  }
  return reading;
}

}  // namespace ddpdoctor::stacks
