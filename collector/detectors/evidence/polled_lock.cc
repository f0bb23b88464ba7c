// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/polled_lock.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

/// The lines under a header, by indentation.
std::string body_below(const program::SourceText& lines, int header, int indent) {
  std::string body;
  for (auto line = lines.upper_bound(header); line != lines.end(); ++line) {
    const std::size_t start = line->second.find_first_not_of(" \t");
    if (start == std::string::npos || line->second[start] == '#') {
      continue;
    }
    if (static_cast<int>(start) <= indent) {
      break;
    }
    body += line->second + "\n";
  }
  return body;
}

/// Creates a file that must not exist yet: O_EXCL, mode x, mkdir, link.
bool creates_exclusively(std::string_view code) {
  const bool makes = base::contains(code, "O_EXCL") || base::contains(code, "'x'") ||
                     base::contains(code, "\"x\"") || base::contains(code, "os.mkdir(") ||
                     base::contains(code, "os.link(") || base::contains(code, "os.symlink(") ||
                     base::contains(code, "exist_ok=False");
  return makes && (base::contains(code, "FileExistsError") || base::contains(code, "OSError") ||
                   base::contains(code, "EEXIST"));
}

/// "if not os.path.exists(lock): break" in the body of a loop.
bool ends_when_gone(std::string_view body) {
  const std::size_t test = body.find("if not ");
  const std::string_view line =
      test == std::string_view::npos ? std::string_view() : body.substr(test);
  const std::size_t exists = line.substr(0, line.find('\n')).find("exists(");
  return exists != std::string_view::npos &&
         (base::contains(line, "break") || base::contains(line, "return"));
}

/// The body of the user's function that a condition calls: "while not try_lock(path)".
std::string called_in(const program::SourceText& lines, std::string_view condition) {
  for (const auto& [number, text] : lines) {
    const std::size_t def = text.find("def ");
    const std::size_t open = text.find('(');
    if (def == std::string::npos || open == std::string::npos || open < def + 5) {
      continue;
    }
    const std::string name = text.substr(def + 4, open - def - 3);  // with its bracket
    if (base::contains(condition, name)) {
      return body_below(lines, number, static_cast<int>(text.find_first_not_of(" \t")));
    }
  }
  return {};
}

bool waits_until_gone(const program::SourceText& lines, const program::Block& loop) {
  if (loop.kind != program::BlockKind::kWhile && loop.kind != program::BlockKind::kFor) {
    return false;
  }
  const bool tests =
      base::contains(loop.condition, "exists(") || base::contains(loop.condition, "isfile(");
  if (tests) {
    return loop.kind == program::BlockKind::kWhile && !base::contains(loop.condition, "not ");
  }
  const std::string body = body_below(lines, loop.line, loop.indent);
  return creates_exclusively(body) || ends_when_gone(body) ||
         creates_exclusively(called_in(lines, loop.condition));
}

}  // namespace

bool polls_for_lock(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* user = own_user_frame(thread);
  if (user == nullptr || innermost_python(thread) != user) {
    return false;
  }
  const program::SourceText& lines = lines_of(job, user->file);
  const auto around = program::enclosing(lines, user->line);
  return std::any_of(around.begin(), around.end(), [&lines](const program::Block& block) {
    return waits_until_gone(lines, block);
  });
}

}  // namespace ddpdoctor::detectors
