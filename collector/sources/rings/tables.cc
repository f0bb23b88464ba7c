// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/tables.h"

#include <algorithm>

#include "wire/layout.h"

namespace ddpdoctor::sources {

std::vector<RecordedSegment> read_segments(const RingBytes& ring) {
  std::vector<RecordedSegment> segments;
  const auto count =
      std::min(ring.load<std::uint32_t>(offsetof(wire::Header, segments)), wire::kSegments);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = offsetof(wire::Ring, segment) + i * sizeof(wire::Segment);
    const auto bits = ring.load<std::uint32_t>(at + offsetof(wire::Segment, created));
    segments.push_back(
        {.name = ring.fixed(at, sizeof(wire::Segment::name)),
         .bytes = static_cast<std::int64_t>(
             ring.load<std::uint64_t>(at + offsetof(wire::Segment, bytes)) >> 1U << 1U),
         .created = (bits & wire::kSegmentCreated) != 0,
         .mapped = (bits & wire::kSegmentMapped) != 0,
         .unlinked = ring.load<std::uint32_t>(at + offsetof(wire::Segment, unlinked)) != 0});
  }
  return segments;
}

std::vector<RecordedWait> read_waits(const RingBytes& ring) {
  constexpr std::uint32_t kHighestTid = 1U << 22U;  // of Linux
  std::vector<RecordedWait> waits;
  const auto monotonic = ring.load<std::uint64_t>(offsetof(wire::Header, monotonic_ns));
  const auto wall = ring.load<std::uint64_t>(offsetof(wire::Header, wall_ns));
  for (std::uint32_t i = 0; i < wire::kWaits; ++i) {
    const std::size_t at = offsetof(wire::Header, wait) + i * sizeof(wire::Wait);
    const auto tid = ring.load<std::uint32_t>(at + offsetof(wire::Wait, tid));
    const auto kind = ring.load<std::uint32_t>(at + offsetof(wire::Wait, kind));
    const auto since = ring.load<std::uint64_t>(at + offsetof(wire::Wait, since));
    if (tid == 0 || tid > kHighestTid || kind == 0 ||
        kind > static_cast<std::uint32_t>(wire::WaitKind::kSemaphore)) {
      continue;
    }
    const bool barrier = kind == static_cast<std::uint32_t>(wire::WaitKind::kBarrier);
    waits.push_back(
        {.tid = static_cast<pid_t>(tid),
         .what = barrier ? "pthread barrier" : "semaphore",
         .object = ring.load<std::uint64_t>(at + offsetof(wire::Wait, object)),
         .since = static_cast<double>(static_cast<std::int64_t>(since + wall - monotonic)) / 1e9});
  }
  return waits;
}

std::string read_stderr(const RingBytes& ring) {
  const auto written = ring.load<std::uint32_t>(offsetof(wire::Header, stderr_head));
  const auto* const begin =
      reinterpret_cast<const char*>(ring.all().data()) + offsetof(wire::Ring, standard_error);
  if (written <= wire::kStderrBytes) {
    return {begin, written};
  }
  const std::uint32_t at = written % wire::kStderrBytes;
  std::string text(begin + at, wire::kStderrBytes - at);
  text.append(begin, at);
  return text;
}

}  // namespace ddpdoctor::sources
