// SPDX-License-Identifier: Apache-2.0
// Renderings of a diagnosis: each a pure function to a string.
#pragma once

#include <string>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

struct TextOptions {
  bool colour = false;
  bool native = false;        // show every frame
  bool all_findings = false;  // more than the first three
  std::size_t width = 100;
};

std::string text(const diagnosis::Diagnosis& diagnosis, const TextOptions& options);

/// ddpdoctor.report/1, the one full rendering.
std::string json(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
