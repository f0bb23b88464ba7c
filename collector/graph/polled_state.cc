// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/polled_state.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/word.h"
#include "collector/model/questions.h"
#include "collector/python_source/blocks.h"

namespace ddpdoctor::graph {
namespace {

/// The last words of the names in a condition: "todo" of self.todo, but not what it calls.
std::vector<std::string_view> things_in(std::string_view condition) {
  constexpr std::array<std::string_view, 9> kOthers = {"self", "not",  "and", "or",   "is",
                                                       "None", "True", "len", "False"};
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < condition.size(); ++i) {
    std::size_t end = i;
    while (end < condition.size() && base::is_word(condition[end])) {
      ++end;
    }
    const std::string_view word = condition.substr(i, end - i);
    const bool qualifies = end < condition.size() && (condition[end] == '(');
    if (word.size() > 1 && !qualifies &&
        std::find(kOthers.begin(), kOthers.end(), word) == kOthers.end()) {
      out.push_back(word);
    }
    i = std::max(i, end);
  }
  return out;
}

/// "todo.popleft()", "done = True", "left -= 1", "del todo[0]".
bool changes(std::string_view line, std::string_view thing) {
  constexpr std::array<std::string_view, 12> kChanges = {".pop",  ".remove", ".clear",   ".discard",
                                                         ".get(", ".append", ".update(", ".set",
                                                         "+=",    "-=",      "[",        ".put"};
  for (std::size_t at = line.find(thing); at != std::string_view::npos;
       at = line.find(thing, at + 1)) {
    const std::size_t end = at + thing.size();
    if ((at > 0 && base::is_word(line[at - 1])) ||
        (end < line.size() && base::is_word(line[end]))) {
      continue;
    }
    const std::string_view rest = base::trim(line.substr(end));
    const bool assigned = rest.starts_with("=") && !rest.starts_with("==");
    if (assigned || std::any_of(kChanges.begin(), kChanges.end(), [rest](std::string_view change) {
          return rest.starts_with(change);
        })) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool changes_what_is_polled(const model::JobModel& job, const model::Thread& other,
                            const model::Thread& thread) {
  const model::Frame* asks = model::user_frame(thread);
  const model::Frame* works = model::user_frame(other);
  const auto here = asks == nullptr ? job.sources.end() : job.sources.find(asks->file);
  const auto there = works == nullptr ? job.sources.end() : job.sources.find(works->file);
  if (here == job.sources.end() || there == job.sources.end()) {
    return false;
  }
  const auto loop = python_source::loop_around(here->second, asks->line);
  const auto extent = python_source::function_extent(there->second, works->line);
  if (!loop || loop->kind != python_source::BlockKind::kWhile || !extent) {
    return false;
  }
  const auto things = things_in(loop->condition);
  for (auto at = there->second.lower_bound(extent->first);
       at != there->second.end() && at->first <= extent->second; ++at) {
    const std::string_view line = at->second;
    if (std::any_of(things.begin(), things.end(),
                    [line](std::string_view thing) { return changes(line, thing); })) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::graph
