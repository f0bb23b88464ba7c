// SPDX-License-Identifier: Apache-2.0
// A corrupt ring: the input is a list of patches (four bytes of offset, eight of value) to an
// otherwise empty ring with a valid header, which is read and turned into a JobModel.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "collector/model/building/add_recordings.h"
#include "collector/sources/rings/reader.h"
#include "wire/layout.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  // Megabytes of zeros: allocated once; the changes of an input are undone.
  static std::vector<std::byte> bytes(sizeof(wire::Ring));
  std::vector<std::size_t> changed;
  std::memcpy(bytes.data() + offsetof(wire::Header, magic), &wire::kMagic, sizeof wire::kMagic);
  std::memcpy(bytes.data() + offsetof(wire::Header, version), &wire::kVersion,
              sizeof wire::kVersion);
  constexpr std::size_t kPatch = 12;
  for (std::size_t at = 0; at + kPatch <= size; at += kPatch) {
    std::uint32_t place = 0;
    std::memcpy(&place, data + at, sizeof place);
    // every other patch goes to the header and the first slots, where it has most effect
    const std::size_t room = (at / kPatch) % 2 == 0 ? 8192 : bytes.size() - 8;
    changed.push_back(12 + place % (room - 12));
    std::memcpy(bytes.data() + changed.back(), data + at + 4, 8);
  }
  if (const auto recording = sources::read_ring(bytes, "fuzzed.ring")) {
    model::JobModel job;
    model::add_recordings(job, {*recording, *recording});
  }
  for (const std::size_t place : changed) {
    std::memset(bytes.data() + place, 0, 8);
  }
  return 0;
}
