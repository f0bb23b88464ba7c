// SPDX-License-Identifier: Apache-2.0
#include "cli/input_formats.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "collector/imports/capture.h"
#include "collector/recording/recording.h"

namespace ddpdoctor::cli {

namespace {

bool is_recording(std::string_view head, std::string_view) {
  return recording::is_recording(head);
}

bool is_json_object(std::string_view head, std::string_view) {
  return base::trim(head.substr(0, 4096)).starts_with('{');
}

// Special ones first: what only looks at the first character comes last.
constexpr std::array<InputFormat, 2> kFormats{{
    {.name = "recordings (.ddpd)",
     .recognises = is_recording,
     .read = recording::load,
     .read_all = nullptr},
    {.name = "ddpdoctor.capture/1 (JSON)",
     .recognises = is_json_object,
     .read = imports::read_capture,
     .read_all = nullptr},
}};

}  // namespace

std::span<const InputFormat> input_formats() {
  return kFormats;
}

const InputFormat* input_format(std::string_view head, std::string_view path) {
  const auto* const found =
      std::find_if(kFormats.begin(), kFormats.end(),
                   [&](const InputFormat& format) { return format.recognises(head, path); });
  return found == kFormats.end() ? nullptr : found;
}

std::string readable_formats() {
  std::string out;
  for (const InputFormat& format : kFormats) {
    out += out.empty() ? "" : ", ";
    out += format.name;
  }
  return out;
}

}  // namespace ddpdoctor::cli
