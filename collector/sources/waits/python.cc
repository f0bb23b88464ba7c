// SPDX-License-Identifier: Apache-2.0
// Waits that only Python frames explain: a key of the store, another thread's import, a lock file
// to be removed, a thread to join.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/processes/python_frames.h"
#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

using stacks::Frame;

bool in_store(const stacks::ThreadStack& thread) {
  constexpr std::array<std::string_view, 5> kCalls{"Store::get", "Store::wait", "Store::doWait",
                                                   "Store::doGet", "Store::compareSet"};
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
    return frame.language == stacks::Language::kNative &&
           std::any_of(kCalls.begin(), kCalls.end(), [&frame](std::string_view call) {
             return frame.function.find(call) != std::string::npos;
           });
  });
}

/// The first local named like a key in the frames around the store call.
std::string store_key(const stacks::ThreadStack& thread) {
  constexpr std::array<std::string_view, 6> kNames{"last_worker_key", "key",  "store_key",
                                                   "barrier_key",     "keys", "last_member_key"};
  for (const Frame& frame : thread.frames) {
    for (const std::string_view name : kNames) {
      if (const auto value = local_text(frame, name)) {
        return *value;
      }
    }
  }
  return {};
}

std::optional<WaitTarget> store_wait(WaitContext& context, const WaitingThread& waiting) {
  if (!in_store(waiting.thread)) {
    return std::nullopt;
  }
  WaitTarget target{.kind = "store-key", .target = store_key(waiting.thread), .detail = {}};
  const auto server = call_wait(context, waiting);
  if (server && server->kind == "socket") {
    target.detail = "asked of the store: " + server->detail;
  }
  return target;
}

/// importlib's lock of one module: another thread is importing it.
std::optional<WaitTarget> import_wait(const WaitingThread& waiting) {
  const Frame* innermost = innermost_python(waiting.thread);
  if (innermost == nullptr || innermost->file.find("importlib._bootstrap") == std::string::npos ||
      short_name(*innermost) != "acquire") {
    return std::nullopt;
  }
  WaitTarget target{.kind = "import-lock", .target = {}, .detail = {}};
  if (const auto lock = local_text(*innermost, "self")) {
    const auto module = attribute_text(*lock, "name");
    target.detail = module ? "import of " + base::printable(*module) : *lock;
  }
  for (const Frame& frame : waiting.thread.frames) {
    const auto module =
        frame.language == stacks::Language::kPython ? local_text(frame, "name") : std::nullopt;
    if (module && frame.file.find("importlib._bootstrap") != std::string::npos) {
      target.detail = "import of " + *module;
      break;
    }
  }
  return target;
}

std::optional<WaitTarget> lock_file_wait(const WaitingThread& waiting) {
  const auto waited = lock_file_frame(waiting.thread, waiting.process.row.pid);
  if (!waited) {
    return std::nullopt;
  }
  return WaitTarget{
      .kind = "lock-file",
      .target = waited->path.empty() ? std::string() : "file:" + waited->path,
      .detail = waited->path.empty() ? "polls a lock file" : base::printable(waited->path),
      .limit = waited->gives_up};
}

/// Thread.join of a Python thread, identified by the name in `self`'s text.
std::optional<WaitTarget> thread_join(const WaitingThread& waiting) {
  const Frame* join = nullptr;
  for (const Frame& frame : waiting.thread.frames) {
    if (frame.language != stacks::Language::kPython) {
      continue;
    }
    const std::string_view name = short_name(frame);
    if (!frame.file.ends_with("threading.py") ||
        (name != "join" && name != "_wait_for_tstate_lock")) {
      break;
    }
    join = &frame;
  }
  if (join == nullptr || waiting.thread.state == 'R') {
    return std::nullopt;
  }
  WaitTarget target{.kind = "thread", .target = {}, .detail = "joins a Python thread"};
  const std::string self = local_text(*join, "self").value_or("");
  const auto name = attribute_text(self, "_name");
  for (const stacks::ThreadStack& thread : waiting.stacks.threads) {
    if (name && thread.python_name == *name && thread.tid != waiting.thread.tid) {
      target.target = fmt::format("thread:{}", thread.tid);
      target.detail = fmt::format("joins thread {} ({})", thread.tid, base::printable(*name));
    }
  }
  return target;
}

}  // namespace

std::optional<WaitTarget> python_wait(WaitContext& context, const WaitingThread& waiting) {
  if (auto found = store_wait(context, waiting)) {
    return found;
  }
  if (auto found = import_wait(waiting)) {
    return found;
  }
  if (auto found = lock_file_wait(waiting)) {
    return found;
  }
  return thread_join(waiting);
}

}  // namespace ddpdoctor::sources
