// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/wrapping_frames.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/folders.h"

namespace ddpdoctor::detectors {

bool only_wraps(const model::Frame& frame) {
  constexpr std::array<std::string_view, 8> kFiles = {
      "torch/utils/_contextlib.py",
      "torch/distributed/c10d_logger.py",
      "torch/distributed/elastic/multiprocessing/errors/__init__.py",
      "torch/multiprocessing/spawn.py",
      "torch/nn/modules/module.py",
      "contextlib.py",
      "runpy.py",
      "threading.py"};
  return base::lies_in(frame.file, "multiprocessing") || frame.file.starts_with("<frozen ") ||
         std::any_of(kFiles.begin(), kFiles.end(), [&frame](std::string_view file) {
           return frame.file == file || frame.file.ends_with(fmt::format("/{}", file));
         });
}

}  // namespace ddpdoctor::detectors
