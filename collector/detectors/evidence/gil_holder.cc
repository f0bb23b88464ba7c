// SPDX-License-Identifier: Apache-2.0
// gdb stops all threads at one moment, so a thread in take_gil and one without the GIL are seen
// together only if a third one holds it. A thread that computes is not meant: it will release it.
#include "collector/detectors/evidence/gil_holder.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

bool is_native(const model::Frame& frame) {
  return frame.language == model::Language::kNative;
}

}  // namespace

bool sleeps_in_kernel(const model::Thread& thread) {
  constexpr std::array<std::string_view, 14> kWaits = {
      "poll",  "select", "epoll_wait", "accept", "recv",  "connect",  "_read",
      "futex", "cond_",  "sem_",       "wait4",  "sleep", "lll_lock", "flock"};
  if (thread.frames.empty()) {
    return false;
  }
  const model::Frame& innermost = thread.frames.front();
  const std::string_view name = innermost.function;
  return model::is_libc_code(innermost) && (name == "read" || base::contains_any(name, kWaits));
}

const model::Thread* holder_by_elimination(const model::Process& process) {
  const model::Thread* holder = nullptr;
  bool wanted = false;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil || thread.frames.empty() || !is_native(thread.frames.front())) {
      return nullptr;
    }
    if (waits_for_gil(thread)) {
      wanted = true;
      continue;
    }
    if (std::none_of(thread.frames.begin(), thread.frames.end(), model::is_interpreter_code)) {
      continue;
    }
    if (holder != nullptr) {
      return nullptr;
    }
    holder = &thread;
  }
  return wanted && holder != nullptr && sleeps_in_kernel(*holder) ? holder : nullptr;
}

}  // namespace ddpdoctor::detectors
