// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/awaited_main.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool says_end_of_wait(std::string_view exception) {
  constexpr std::array<std::string_view, 5> kWords = {"Timed out", "Socket Timeout", "ait timeout",
                                                      "timed out", "NCCL communicator was aborted"};
  return base::contains_any(exception, kWords);
}

/// "[1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] …".
std::optional<model::Rank> speaker_in(std::string_view exception) {
  const std::size_t at = exception.find("] is setting up NCCL communicator");
  const std::size_t open = at == exception.npos ? at : exception.rfind('[', at);
  model::Rank rank = 0;
  if (open == exception.npos ||
      std::from_chars(exception.data() + open + 1, exception.data() + at, rank).ec != std::errc()) {
    return std::nullopt;
  }
  return rank;
}

}  // namespace

std::optional<AwaitedMain> awaited_main(const model::JobModel& job) {
  if (job.logs.empty()) {
    return std::nullopt;
  }
  AwaitedMain out;
  const std::vector<Traceback> all = tracebacks(job);
  for (const Traceback& one : all) {
    if (!is_consequence(one) && !one.of_cleanup && !one.ignored) {
      return std::nullopt;
    }
    const AwaitedContext& context = one.awaited;
    if (context.function.empty() || !says_end_of_wait(one.exception)) {
      continue;
    }
    const auto rank = one.rank ? one.rank : speaker_in(one.exception);
    out.waiting = rank ? out.waiting.united({*rank}) : out.waiting;
    const bool users = model::is_user_file(context.where.file) ||
                       may_be_users_file(context.where.file) || !one.place.known();
    out.place = users ? context.where : one.place;
    out.exception = one.exception;
    out.function = context.function == "_goes_first" ? "main_process_first" : context.function;
    out.inside = context.lets_one_first;
  }
  out.one_host = job.hosts.size() <= 1;
  return out.function.empty() || out.waiting.contains(0) ? std::nullopt
                                                         : std::optional(std::move(out));
}

}  // namespace ddpdoctor::detectors
