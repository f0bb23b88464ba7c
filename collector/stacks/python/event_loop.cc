// SPDX-License-Identifier: Apache-2.0
// Layouts from CPython's headers 3.8 to 3.13 (Modules/_asynciomodule.c, cpython/setobject.h,
// cpython/weakrefobject.h). A value is accepted only if the object's type matches.
#include "collector/stacks/python/event_loop.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostCoroutines = 64;
constexpr std::uint64_t kMostTasks = 1U << 14U;  // slots of the set that are read
constexpr std::int32_t kFinished = 2;            // of fut_state

/// Offsets in a task, in bytes.
struct AsyncioLayout {
  std::int32_t version;
  RemoteAddress coroutine;  // task_coro
  RemoteAddress unasked;    // fut_log_tb; fut_state is the int before it
};

constexpr std::array<AsyncioLayout, 6> kAsyncioLayouts = {{
    {0x0308, 112, 76},
    {0x0309, 152, 84},
    {0x030a, 160, 92},
    {0x030b, 136, 92},
    {0x030c, 136, 92},
    {0x030d, 120, 100},
}};

constexpr RemoteAddress kException = 48;   // fut_exception
constexpr RemoteAddress kFirstField = 16;  // after the header of any object

const AsyncioLayout* layout_of(const PythonObjects& objects) {
  const auto* const found = std::find_if(
      kAsyncioLayouts.begin(), kAsyncioLayouts.end(),
      [&objects](const AsyncioLayout& one) { return one.version == objects.layout().version; });
  return found == kAsyncioLayouts.end() || objects.layout().object_header != kFirstField ? nullptr
                                                                                         : found;
}

bool is_task(PythonObjects& objects, RemoteAddress object) {
  return object != 0 && objects.type_name(object) == "_asyncio.Task";
}

/// The top of the value stack of a suspended frame: the object that it awaits.
RemoteAddress awaited_by(PythonObjects& objects, RemoteAddress frame) {
  constexpr RemoteAddress kValueStack = 64;
  constexpr RemoteAddress kStackTop = 72;    // 3.8, 3.9: after the last value
  constexpr RemoteAddress kStackDepth = 80;  // 3.10
  constexpr std::int32_t kDeepest = 4096;
  RemoteMemory& memory = objects.memory();
  const PythonLayout& layout = objects.layout();
  if (layout.version < kVersion310) {
    const RemoteAddress top = pointer(memory, frame + kStackTop);
    return top < 8 ? 0 : pointer(memory, top - 8);
  }
  const bool old = layout.version < kVersion311;
  const auto locals = static_cast<RemoteAddress>(layout.frame_locals);
  const auto depth = memory.get<std::int32_t>(frame + (old ? kStackDepth : locals - 8)).value_or(0);
  if (depth <= 0 || depth > kDeepest) {
    return 0;
  }
  const RemoteAddress first = old ? pointer(memory, frame + kValueStack) : frame + locals;
  return first == 0 ? 0 : pointer(memory, first + 8 * (static_cast<RemoteAddress>(depth) - 1));
}

/// The coroutine or generator that runs when `object` is awaited; 0 if there is none.
RemoteAddress runs_in(PythonObjects& objects, const AsyncioLayout& layout, RemoteAddress object) {
  constexpr std::array<std::string_view, 4> kWrappers = {
      "async_generator_asend", "async_generator_athrow", "coroutine_wrapper", "anext_awaitable"};
  constexpr std::array<std::string_view, 3> kRunning = {"coroutine", "generator",
                                                        "async_generator"};
  constexpr int kMostWrappers = 8;
  for (int i = 0; i < kMostWrappers && object != 0; ++i) {
    const std::string type = objects.type_name(object);
    if (std::find(kRunning.begin(), kRunning.end(), type) != kRunning.end()) {
      return object;
    }
    if (is_task(objects, object)) {
      object = pointer(objects.memory(), object + layout.coroutine);
    } else if (type == "_asyncio.FutureIter" ||
               std::find(kWrappers.begin(), kWrappers.end(), type) != kWrappers.end()) {
      object = pointer(objects.memory(), object + kFirstField);
    } else {
      return 0;
    }
  }
  return 0;
}

/// The table of weak references in asyncio's weak set of all tasks.
std::vector<RemoteAddress> tasks(PythonObjects& objects) {
  constexpr RemoteAddress kMask = 32;
  constexpr RemoteAddress kTable = 40;
  constexpr RemoteAddress kEntry = 16;  // key, hash
  const auto module = objects.module("asyncio.tasks");
  auto all = module ? objects.item(*module, "_scheduled_tasks") : std::nullopt;
  all = !all && module ? objects.item(*module, "_all_tasks") : all;
  const auto data = all ? objects.attribute(*all, "data") : std::nullopt;
  std::vector<RemoteAddress> found;
  if (!data || objects.type_name(*data) != "set") {
    return found;
  }
  const auto mask = objects.memory().get<std::uint64_t>(*data + kMask).value_or(0);
  const RemoteAddress table = pointer(objects.memory(), *data + kTable);
  for (std::uint64_t i = 0; table != 0 && i <= std::min(mask, kMostTasks); ++i) {
    const RemoteAddress reference = pointer(objects.memory(), table + i * kEntry);
    const std::string type = reference == 0 ? std::string() : objects.type_name(reference);
    const bool weak = type == "weakref" || type == "weakref.ReferenceType" ||
                      type == "weakref.ref" || type == "ReferenceType";
    const RemoteAddress task = weak ? pointer(objects.memory(), reference + kFirstField) : 0;
    if (is_task(objects, task)) {
      found.push_back(task);
    }
  }
  return found;
}

}  // namespace

bool runs_event_loop(const Frame& frame) {
  return frame.language == Language::kPython && frame.file.ends_with("asyncio/base_events.py") &&
         frame.function.ends_with("run_until_complete");
}

RawPythonStack awaiting_frames(PythonObjects& objects, RemoteAddress task) {
  RawPythonStack stack;
  const AsyncioLayout* layout = layout_of(objects);
  if (layout == nullptr || !is_task(objects, task)) {
    return stack;
  }
  RemoteAddress next = runs_in(objects, *layout, task);
  while (next != 0 && stack.size() < kMostCoroutines) {
    const RemoteAddress frame = generator_frame(objects, next);
    const auto raw =
        frame == 0 ? std::nullopt : read_python_frame(objects.memory(), objects.layout(), frame);
    const bool again = std::any_of(stack.begin(), stack.end(), [frame](const RawPythonFrame& one) {
      return one.address == frame;
    });
    if (!raw || again) {
      break;
    }
    stack.push_back(*raw);
    next = runs_in(objects, *layout, awaited_by(objects, frame));
  }
  std::reverse(stack.begin(), stack.end());
  return stack;
}

RemoteAddress lost_exception(PythonObjects& objects) {
  const AsyncioLayout* layout = layout_of(objects);
  if (layout == nullptr) {
    return 0;
  }
  for (const RemoteAddress task : tasks(objects)) {
    const auto state = objects.memory().get<std::int32_t>(task + layout->unasked - 4);
    const auto flags = objects.memory().get<std::uint8_t>(task + layout->unasked);
    const RemoteAddress exception = pointer(objects.memory(), task + kException);
    if (state == kFinished && flags && (*flags & 1U) != 0 && exception != 0) {
      return exception;
    }
  }
  return 0;
}

}  // namespace ddpdoctor::stacks
