// SPDX-License-Identifier: Apache-2.0
// The traceback that Python prints for an exception, most recent call last.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

inline constexpr std::string_view kTracebackHeading = "Traceback (most recent call last):";

struct PythonTraceback {
  std::vector<model::Frame> frames;  // outermost first
  std::map<std::string, std::map<int, std::string>> sources;
  std::string_view exception;  // "KeyboardInterrupt", "ValueError: no"
};

/// Reads the traceback with the heading at the cursor.
PythonTraceback read_python_traceback(Lines& lines);

/// Its only thread has the frames of the traceback.
StackDump dump_of(PythonTraceback traceback);

}  // namespace ddpdoctor::imports
