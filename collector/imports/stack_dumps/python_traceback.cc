// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/python_traceback.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace ddpdoctor::imports {

PythonTraceback read_python_traceback(Lines& lines) {
  PythonTraceback out;
  lines.take();
  while (!lines.done() && lines.peek().starts_with(' ')) {
    const std::string_view line = lines.take();
    if (auto frame = python_frame(line)) {
      if (out.frames.size() < kMostFrames) {
        out.frames.push_back(std::move(*frame));
      }
    } else if (!out.frames.empty() && line.starts_with("    ")) {
      const model::Frame& above = out.frames.back();
      out.sources[above.file].try_emplace(above.line, base::elide(base::trim(line), kLongestName));
    }
  }
  out.exception = base::trim(lines.take());
  return out;
}

StackDump dump_of(PythonTraceback traceback) {
  StackDump dump = new_dump();
  model::Thread* thread = add_thread(dump, 0, "MainThread");
  std::reverse(traceback.frames.begin(), traceback.frames.end());
  thread->frames = std::move(traceback.frames);
  dump.sources = std::move(traceback.sources);
  return dump;
}

}  // namespace ddpdoctor::imports
