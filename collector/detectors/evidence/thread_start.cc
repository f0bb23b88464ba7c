// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/thread_start.h"

#include <algorithm>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

const model::Thread* library_thread(const model::Process& process, const model::Thread& main) {
  const auto found =
      std::find_if(process.threads.begin(), process.threads.end(), [&main](const auto& thread) {
        return &thread != &main &&
               python_frame_in(thread, "/threading.py", {"_bootstrap"}) != nullptr;
      });
  return found == process.threads.end() ? nullptr : &*found;
}

std::string_view thread_maker(const model::Thread& thread) {
  if (const model::Frame* run = python_frame_in(thread, "/threading.py", {"run"});
      run != nullptr && run->function.find("Timer") != std::string::npos) {
    return "Timer(";
  }
  const bool pool = python_frame_in(thread, "concurrent/futures/thread.py", {"_worker"}) != nullptr;
  return pool ? "ThreadPoolExecutor(" : "Thread(";
}

model::CallSite only_start(const model::JobModel& job, std::string_view maker) {
  model::CallSite found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view code = base::trim(text);
      const std::size_t at = code.find(maker);
      if (at == std::string_view::npos || code.starts_with("#") || code.starts_with("class ") ||
          (at > 0 && base::is_word(code[at - 1])) ||
          code.find("daemon=True") != std::string_view::npos) {
        continue;
      }
      if (found.known()) {
        return {};
      }
      found = {.file = file, .line = number, .function = function_around(lines, number)};
    }
  }
  return found;
}

bool starts_itself(const model::JobModel& job, const model::CallSite& start) {
  const auto line = model::source_line(job, start.file, start.line);
  return line && !start.function.empty() && line->find(start.function) != std::string_view::npos;
}

}  // namespace ddpdoctor::detectors
