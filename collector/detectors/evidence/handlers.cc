// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/handlers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/path_ends.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;

bool stands_in(const model::JobModel& job, const Path& path, const std::string& file,
               const Block& block) {
  return std::any_of(path.begin(), path.end(), [&](const model::CallSite& site) {
    if (site.file != file) {
      return false;
    }
    const auto around = program::enclosing(lines_of(job, file), site.line);
    return std::any_of(around.begin(), around.end(),
                       [&block](const Block& one) { return one.line == block.line; });
  });
}

/// "for batch in loader", "for i in range(len(data))"; a literal count is equal on every rank.
bool goes_over_data(const program::SourceText& lines, const Block& loop) {
  const bool over =
      loop.kind == BlockKind::kFor && (loop.text.find("range(") == std::string::npos ||
                                       loop.text.find("len(") != std::string::npos);
  return over || program::data_end_of(lines, loop.line);
}

/// True if the line is in the try of this finally, and not in a loop that the data ends.
bool is_in_try_of(const model::JobModel& job, const Path& path, const model::CallSite& site,
                  const Block& finally) {
  bool in_try = false;
  for (const model::CallSite& other : path) {
    const program::SourceText& lines = lines_of(job, other.file);
    for (const Block& block : program::enclosing(lines, other.line)) {
      const bool its_try = block.kind == BlockKind::kTry && other.file == site.file &&
                           other.function == site.function && block.indent == finally.indent &&
                           other.line < finally.line;
      if (goes_over_data(lines, block)) {
        return false;
      }
      in_try = in_try || its_try;
      if (its_try) {
        break;
      }
    }
    if (in_try) {
      break;
    }
  }
  return in_try;
}

}  // namespace

bool in_handler(const model::JobModel& job, const Path& path, const Path& other) {
  for (const model::CallSite& site : path) {
    for (const Block& block : program::enclosing(lines_of(job, site.file), site.line)) {
      // `except StopIteration: save()` is the normal end of a loop over data.
      if (block.kind == BlockKind::kExcept && program::catches_failures(block) &&
          !stands_in(job, other, site.file, block)) {
        return true;
      }
      if (block.kind == BlockKind::kFinally && is_in_try_of(job, other, site, block)) {
        return true;
      }
    }
  }
  return false;
}

const model::Frame* in_exception_hook(const model::Thread& thread) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kHooks = {{
      {"on_exception", ""},
      {"_interrupt", "trainer/call.py"},
  }};
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [&](const model::Frame& frame) {
        const auto is = [&frame](const auto& hook) {
          return graph::plain_name(frame.function) == hook.first &&
                 (hook.second.empty() ? !model::is_user_file(frame.file)
                                      : base::path_ends_with(frame.file, hook.second));
        };
        return frame.language == model::Language::kPython &&
               std::any_of(kHooks.begin(), kHooks.end(), is);
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

bool throws_into_generator(const model::JobModel& job, const model::Thread& thread) {
  const bool native = model::has_native_frame(thread, "gen_throw");
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const model::Frame& frame) {
    const bool leaves = frame.language == model::Language::kPython &&
                        frame.file.ends_with("/contextlib.py") &&
                        frame.function.ends_with("__exit__");
    const auto text = leaves ? model::source_line(job, frame.file, frame.line) : std::nullopt;
    return leaves && (native || (text && text->find(".throw(") != std::string_view::npos));
  });
}

}  // namespace ddpdoctor::detectors
