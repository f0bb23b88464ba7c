// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/languages.h"

#include <set>
#include <string_view>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::model {

void mark_languages(const JobModel& job) {
  std::set<std::string_view> python;
  std::set<std::string_view> native;
  for (const Observation& observation : job.observations) {
    for (const Process& process : observation.processes) {
      for (const Thread& thread : process.threads) {
        for (const Frame& frame : thread.frames) {
          (frame.language == Language::kPython ? python : native).insert(frame.file);
        }
      }
    }
  }
  for (const auto& [file, lines] : job.sources) {
    if (native.contains(file) && !python.contains(file)) {
      program::is_not_python(lines);
    }
  }
}

}  // namespace ddpdoctor::model
