// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/kept_locks.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

struct Handover {
  std::string taker;  // "pid:7", as a wait names it
  std::string heir;
};

}  // namespace

void name_heirs_of_locks(JobModel& job) {
  std::multimap<pid_t, Handover> by_waiter;
  for (const Fact* fact : facts(job, "file-lock")) {
    const auto waiter = fact->number("waiting_pid");
    const auto taker = fact->number("holder_pid");
    const auto heir = fact->number("heir_pid");
    if (waiter && taker && heir) {
      by_waiter.emplace(static_cast<pid_t>(*waiter),
                        Handover{.taker = fmt::format("pid:{:.0f}", *taker),
                                 .heir = fmt::format("pid:{:.0f}", *heir)});
    }
  }
  if (by_waiter.empty() || job.observations.empty()) {
    return;
  }
  for (Process& process : job.observations.back().processes) {
    const auto [begin, end] = by_waiter.equal_range(process.pid);
    for (auto one = begin; one != end; ++one) {
      for (Thread& thread : process.threads) {
        if (thread.waits_on && thread.waits_on->kind == "file-lock" &&
            thread.waits_on->target == one->second.taker) {
          std::string& detail = thread.waits_on->detail;
          detail = fmt::format("{}, held by {}", detail.substr(0, detail.find(", held by")),
                               one->second.heir);
          thread.waits_on->target = one->second.heir;
        }
      }
    }
  }
}

}  // namespace ddpdoctor::model
