// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/unmarked_items.h"

#include <algorithm>
#include <string_view>

#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/skipped_call.h"

namespace ddpdoctor::detectors {
namespace {

/// get() without a timeout.
const model::Frame* waits_for_item(const model::Thread& thread) {
  const model::Frame* const get = python_frame_in(thread, "/queue.py", {"get"});
  const std::string_view timeout = get == nullptr ? std::string_view() : local_of(*get, "timeout");
  return timeout.empty() || timeout == "None" ? get : nullptr;
}

/// Python code in a function in which a reader waits too: it may have taken an item.
bool may_hold_item(const model::Thread& thread, const UnmarkedItems& found) {
  return std::any_of(
      found.readers.begin(), found.readers.end(), [&thread](const model::Thread* reader) {
        const model::Frame* const at = own_user_frame(*reader);
        const auto frames = model::user_frames(thread);
        return at == nullptr || std::any_of(frames.begin(), frames.end(), [at](const auto* frame) {
                 return frame->file == at->file && frame->function == at->function;
               });
      });
}

model::CallSite skipped_mark(const model::JobModel& job, const model::CallSite& read) {
  const auto lines = job.sources.find(read.file);
  const auto line =
      lines == job.sources.end()
          ? std::nullopt
          : program::comes_back_without(lines->second, job.sources, read.line, "task_done");
  return line ? model::CallSite{.file = read.file, .line = *line, .function = read.function}
              : model::CallSite{};
}

}  // namespace

std::optional<UnmarkedItems> unmarked_items(const model::JobModel& job,
                                            const model::Process& process) {
  UnmarkedItems found;
  std::string_view queue;
  for (const model::Thread& thread : process.threads) {
    if (const model::Frame* join = python_frame_in(thread, "/queue.py", {"join"})) {
      found.joiner = &thread;
      queue = local_of(*join, "self");
    }
  }
  if (found.joiner == nullptr) {
    return std::nullopt;
  }
  found.same_queue = !queue.empty();
  for (const model::Thread& thread : process.threads) {
    const model::Frame* const get = waits_for_item(thread);
    const std::string_view read = get == nullptr ? std::string_view() : local_of(*get, "self");
    if (get != nullptr && (read.empty() || queue.empty() || read == queue)) {
      found.readers.push_back(&thread);
      found.same_queue = found.same_queue && !read.empty();
    }
  }
  const auto is_reader = [&found](const model::Thread& thread) {
    return std::find(found.readers.begin(), found.readers.end(), &thread) != found.readers.end();
  };
  const bool held =
      std::any_of(process.threads.begin(), process.threads.end(), [&](const model::Thread& thread) {
        return &thread != found.joiner && !is_reader(thread) && may_hold_item(thread, found);
      });
  const model::Frame* const first =
      found.readers.empty() ? nullptr : own_user_frame(*found.readers.front());
  if (held || first == nullptr) {
    return std::nullopt;
  }
  found.read = model::call_site(*first);
  found.skipped = skipped_mark(job, found.read);
  return found;
}

}  // namespace ddpdoctor::detectors
