// SPDX-License-Identifier: Apache-2.0
// Fuzzes recordings: the bytes of a file, and the start of a capture as in a truncated one.
#include "collector/recording/recording.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/capture/capture.h"
#include "collector/imports/capture/rescue.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto job = ddpdoctor::recording::load(bytes, "fuzz")) {
    (void)ddpdoctor::diagnosis::diagnose(*job);
  }
  if (const auto job = ddpdoctor::imports::rescue_capture(bytes, "fuzz", "cut")) {
    // Packing it would take longer than everything else.
    (void)ddpdoctor::imports::write_capture(*job);
  }
  return 0;
}
