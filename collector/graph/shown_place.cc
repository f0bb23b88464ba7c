// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/shown_place.h"

#include <algorithm>

#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {

bool says_nothing(const History& history, const model::Process& process,
                  const model::Thread& thread) {
  return process.threads.size() == 1 && !process.exit && thread.frames.empty() &&
         (thread.state == '?' || thread.state == 'S') && thread.wchan.empty() && !thread.waits_on &&
         !(process.rank && history.was_read(*process.rank));
}

bool shows_no_place(const model::Process& process, const Standing& standing) {
  return standing.activity == Activity::kUnknown && !standing.call && !standing.user.known() &&
         model::was_dumped(process) &&
         std::all_of(process.threads.begin(), process.threads.end(), model::is_cut_off);
}

}  // namespace ddpdoctor::graph
