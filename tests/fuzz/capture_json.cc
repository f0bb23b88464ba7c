// SPDX-License-Identifier: Apache-2.0
// An untrusted capture, read and diagnosed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/capture/capture.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto job = ddpdoctor::imports::read_capture(text, "fuzzed.json")) {
    static_cast<void>(ddpdoctor::diagnosis::diagnose(*job));
    static_cast<void>(ddpdoctor::imports::write_capture(*job));
  }
  return 0;
}
