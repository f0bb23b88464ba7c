// SPDX-License-Identifier: Apache-2.0
// How the script starts its own processes: fork after CUDA or OpenMP hangs, and the file_system
// strategy leaves segments behind. Reads the script's text and runs nothing.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::start_method {
namespace {

/// The first line, other than a comment, that contains one of the marks; 0 = none.
int line_with(const std::vector<std::string_view>& lines,
              std::initializer_list<std::string_view> marks) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view code = lines[i].substr(0, lines[i].find('#'));
    for (const std::string_view mark : marks) {
      if (code.find(mark) != std::string_view::npos) {
        return static_cast<int>(i) + 1;
      }
    }
  }
  return 0;
}

Remarks look(const Setting& setting) {
  if (setting.plan.script.empty()) {
    return {};
  }
  const auto text = setting.file(setting.plan.script);
  if (!text) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("{} cannot be read from here", setting.plan.script),
             .fix = "is the path right, and is this the folder the job starts in?"}};
  }
  const auto lines = base::split(*text, '\n');
  const std::string_view script = base::file_name(setting.plan.script);
  Remarks remarks;
  const int fork = line_with(
      lines, {"set_start_method(\"fork\"", "set_start_method('fork'", "get_context(\"fork\"",
              "get_context('fork'", "multiprocessing_context=\"fork\"",
              "multiprocessing_context='fork'", "start_method=\"fork\"", "start_method='fork'"});
  const int cuda = line_with(lines, {".cuda(", "\"cuda", "'cuda", "torch.cuda."});
  if (fork != 0 && cuda != 0) {
    remarks.push_back(
        {.level = Level::kWarning,
         .what = fmt::format("{}:{} forks and {}:{} uses CUDA: a child that touches CUDA after its "
                             "parent did fails or hangs",
                             script, fork, script, cuda),
         .fix = "use \"spawn\" or \"forkserver\"; see ddpdoctor explain fork-after-cuda"});
  } else if (fork != 0) {
    remarks.push_back(
        {.level = Level::kWarning,
         .what =
             fmt::format("{}:{} asks for fork: a child hangs when threads or OpenMP ran before it",
                         script, fork),
         .fix = "use \"forkserver\" or \"spawn\"; see ddpdoctor explain fork-after-openmp"});
  }
  if (const int shared = line_with(
          lines, {"set_sharing_strategy(\"file_system\"", "set_sharing_strategy('file_system'"});
      shared != 0) {
    remarks.push_back(
        {.level = Level::kWarning,
         .what = fmt::format(
             "{}:{} shares tensors through named files: a killed job leaves them in /dev/shm",
             script, shared),
         .fix = "file_descriptor with a higher ulimit -n; ddpdoctor clean removes what is left"});
  }
  if (const int spawn = line_with(lines, {"mp.spawn(", "multiprocessing.spawn("});
      spawn != 0 && line_with(lines, {"__name__"}) == 0) {
    remarks.push_back({.level = Level::kBreaks,
                       .what = fmt::format("{}:{} spawns without if __name__ == \"__main__\": "
                                           "every child starts the script again",
                                           script, spawn),
                       .fix = "put the start under if __name__ == \"__main__\":"});
  }
  if (remarks.empty()) {
    remarks.push_back(
        {.level = Level::kOk, .what = fmt::format("{}: no problem found", script), .fix = {}});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{.name = "start-method", .title = "How the script starts processes", .look = look};

}  // namespace ddpdoctor::preflight::start_method
