// SPDX-License-Identifier: Apache-2.0
// Threads are the same if the kernel's id is. The tools stopped the process at different moments,
// which does not matter where it hangs; a process that ran between them is shown in a mixed state,
// as any dump of several threads without a stop is.
#include "collector/imports/stack_dumps/joined_dumps.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "collector/imports/stack_dumps/dump_identity.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

bool has_language(const model::Process& process, model::Language language) {
  return std::any_of(process.threads.begin(), process.threads.end(), [language](const auto& one) {
    return std::any_of(one.frames.begin(), one.frames.end(),
                       [language](const auto& frame) { return frame.language == language; });
  });
}

bool shows_only(const model::Process& process, model::Language language) {
  const auto other =
      language == model::Language::kPython ? model::Language::kNative : model::Language::kPython;
  return model::was_dumped(process) && (process.pid != 0 || process.rank) &&
         has_language(process, language) && !has_language(process, other);
}

bool shows_python(const model::Process& process) {
  return model::was_dumped(process) && (process.pid != 0 || process.rank) &&
         has_language(process, model::Language::kPython);
}

/// The native frames that the innermost Python function called, then the Python frames. Those of
/// the native dump have more symbols than the ones that py-spy adds.
void add_native(const model::Thread& native, model::Thread& thread) {
  const auto end = std::find_if(native.frames.begin(), native.frames.end(), [](const auto& frame) {
    return frame.function.find("_PyEval_EvalFrame") != std::string::npos ||
           frame.function.find("PyEval_EvalFrame") != std::string::npos;
  });
  const auto python =
      std::find_if(thread.frames.begin(), thread.frames.end(),
                   [](const auto& frame) { return frame.language == model::Language::kPython; });
  thread.frames.erase(thread.frames.begin(),
                      python == thread.frames.end() ? thread.frames.begin() : python);
  thread.frames.insert(thread.frames.begin(), native.frames.begin(), end);
  thread.waits_on = thread.waits_on ? thread.waits_on : native.waits_on;
  thread.name = thread.name.empty() ? native.name : thread.name;
}

std::string_view tool_of(const model::Thread& thread) {
  std::string_view capture = thread.capture;
  capture.remove_prefix(
      capture.starts_with(model::kDumpedFrom) ? std::string_view(model::kDumpedFrom).size() : 0);
  return capture;
}

void join(model::Process& native, model::Process& process) {
  const bool only_main = native.threads.size() == 1 && native.pid == 0;
  for (model::Thread& other : native.threads) {
    const auto same =
        std::find_if(process.threads.begin(), process.threads.end(), [&](const auto& one) {
          return one.tid == other.tid || (only_main && &one == &process.threads.front());
        });
    if (same == process.threads.end()) {
      process.threads.push_back(std::move(other));
      continue;
    }
    add_native(other, *same);
    if (same->capture != other.capture) {
      same->capture += ", ";
      same->capture += tool_of(other);
    }
  }
}

}  // namespace

void join_tools(std::vector<model::Process>& processes) {
  std::vector<bool> joined(processes.size());  // native dumps that are part of another dump
  std::vector<bool> whole(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!shows_only(processes[i], model::Language::kNative)) {
      continue;
    }
    const auto fits = [&](std::size_t k) {
      // A native dump without a pid is joined by its rank.
      const bool by_rank = processes[i].pid == 0 && processes[i].rank.has_value();
      return !whole[k] && shows_python(processes[k]) &&
             (processes[k].pid == processes[i].pid || by_rank) &&
             processes[k].host == processes[i].host &&
             (processes[k].rank == processes[i].rank ||
              (!by_rank && (!processes[k].rank || !processes[i].rank)));
    };
    for (std::size_t distance = 1; distance < processes.size() && !joined[i]; ++distance) {
      for (const std::size_t k : {i - distance, i + distance}) {
        if (!joined[i] && k < processes.size() && fits(k)) {
          join(processes[i], processes[k]);
          whole[k] = true;
          joined[i] = true;
        }
      }
    }
  }
  std::size_t at = 0;
  std::erase_if(processes, [&joined, &at](const model::Process&) { return joined[at++]; });
}

}  // namespace ddpdoctor::imports
