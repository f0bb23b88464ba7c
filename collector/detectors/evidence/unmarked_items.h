// SPDX-License-Identifier: Apache-2.0
// queue.Queue.join() waits until task_done() was called for each item. If all threads that read the
// queue wait for the next item, none of them has an item that it could still mark.
#pragma once

#include <optional>
#include <vector>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A thread in join() and the threads that read its queue.
struct UnmarkedItems {
  const model::Thread* joiner = nullptr;
  std::vector<const model::Thread*> readers = {};  // in get(), at least one
  model::CallSite read = {};                       // the user's line where the first of them reads
  model::CallSite skipped = {};  // what goes on without task_done(); unknown if no line shows it
  bool same_queue = false;       // memory shows one object; otherwise only the methods are known
};

/// Nothing if a reader is elsewhere, because it may mark its item yet.
std::optional<UnmarkedItems> unmarked_items(const model::JobModel& job,
                                            const model::Process& process);

}  // namespace ddpdoctor::detectors
