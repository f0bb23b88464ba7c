// SPDX-License-Identifier: Apache-2.0
// Sources of the folders: flashinfer/jit/env.py, huggingface_hub/constants.py,
// datasets/builder.py, torch/_inductor/codecache.py (get_lock_dir).
#include "collector/detectors/evidence/lock_askers.h"

#include <algorithm>
#include <array>

#include "base/folders.h"

namespace ddpdoctor::detectors {
namespace {

struct LockHome {
  std::string_view folder;  // of the library's code
  std::string_view locks;
};

constexpr std::array<LockHome, 4> kLockHomes = {{
    {.folder = "flashinfer", .locks = "~/.cache/flashinfer/**/*.lock"},
    {.folder = "huggingface_hub", .locks = "~/.cache/huggingface/hub/.locks"},
    {.folder = "datasets", .locks = "~/.cache/huggingface/datasets/*.lock"},
    {.folder = "torch/_inductor", .locks = "/tmp/torchinductor_$USER/locks"},
}};

}  // namespace

bool is_of_filelock(std::string_view file) {
  return base::lies_in(file, "filelock") || file.ends_with("/filelock.py");
}

bool is_lock_library(std::string_view file) {
  return is_of_filelock(file) || file.ends_with("torch/utils/file_baton.py");
}

const model::Frame* lock_asker(const model::Thread& thread) {
  bool inside = false;
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kPython) {
      continue;
    }
    const bool lock = is_lock_library(frame.file);
    if (inside && !lock) {
      return &frame;
    }
    inside = inside || lock;
  }
  return nullptr;
}

std::string_view home_of_locks(const model::Thread& thread) {
  const model::Frame* asker = lock_asker(thread);
  const auto* const home =
      std::find_if(kLockHomes.begin(), kLockHomes.end(), [asker](const LockHome& one) {
        return asker != nullptr && base::lies_in(asker->file, one.folder);
      });
  return home == kLockHomes.end() ? std::string_view() : home->locks;
}

}  // namespace ddpdoctor::detectors
