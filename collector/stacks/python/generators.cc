// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/generators.h"

#include <algorithm>
#include <array>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::int32_t kVersion315 = 0x030f;

/// gi_frame up to 3.10, a pointer; gi_iframe since then, the frame itself.
struct GeneratorLayout {
  std::int32_t version;
  std::int64_t frame;
};

constexpr std::array<GeneratorLayout, 8> kGeneratorLayouts = {{
    {0x0308, 16},
    {0x0309, 16},
    {0x030a, 16},
    {0x030b, 80},
    {0x030c, 72},
    {0x030d, 72},
    {0x030e, 72},
    {0x030f, 72},
}};

constexpr std::int64_t kHeader = 16;

/// -1 if unknown.
std::int64_t frame_offset(const PythonObjects& objects) {
  const auto* const found = std::find_if(
      kGeneratorLayouts.begin(), kGeneratorLayouts.end(),
      [&objects](const GeneratorLayout& one) { return one.version == objects.layout().version; });
  return found == kGeneratorLayouts.end() || objects.layout().object_header != kHeader
             ? -1
             : found->frame;
}

}  // namespace

RemoteAddress generator_frame(PythonObjects& objects, RemoteAddress generator) {
  const std::int64_t offset = frame_offset(objects);
  if (offset < 0 || generator_is_over(objects, generator)) {
    return 0;
  }
  const bool pointed = objects.layout().version < kVersion311;
  return pointed ? pointer(objects.memory(), at(generator, offset)) : at(generator, offset);
}

bool generator_is_over(PythonObjects& objects, RemoteAddress generator) {
  constexpr std::int64_t kState = -5;  // gi_frame_state: the last of four bytes, then padding
  const std::int64_t offset = frame_offset(objects);
  if (offset < 0) {
    return false;
  }
  if (objects.layout().version < kVersion311) {
    const auto frame = objects.memory().get<RemoteAddress>(at(generator, offset));
    return frame && *frame == 0;
  }
  // FRAME_COMPLETED is 1, FRAME_CLEARED 4; running is 0, all others are negative. 3.15:
  // FRAME_CLEARED is 5, all others are less.
  const int first_over = objects.layout().version >= kVersion315 ? 5 : 1;
  const auto state = objects.memory().get<std::int8_t>(at(generator, offset + kState));
  return state && *state >= first_over;
}

}  // namespace ddpdoctor::stacks
