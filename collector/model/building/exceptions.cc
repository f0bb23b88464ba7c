// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/exceptions.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/model/questions.h"
#include "collector/model/secrets.h"

namespace ddpdoctor::model {
namespace {

/// How an exception was found.
enum class Found { kHandled, kPrinted, kLostInTask };

void add_exception(JobModel& job, const Process& process, const stacks::RaisedException& raised,
                   Found found) {
  Fact fact{.rank = process.rank, .pid = process.pid, .kind = "exception", .fields = {}};
  fact.fields["exception"] = raised.text.empty()
                                 ? raised.type
                                 : fmt::format("{}: {}", raised.type, without_secrets(raised.text));
  fact.fields["printed"] = found == Found::kPrinted;
  if (found == Found::kLostInTask) {
    fact.fields["lost_in_task"] = true;
  }
  const auto user =
      std::find_if(raised.places.begin(), raised.places.end(),
                   [](const stacks::Frame& place) { return is_user_file(place.file); });
  if (user != raised.places.end()) {
    fact.fields["file"] = user->file;
    fact.fields["line"] = std::int64_t{user->line};
    fact.fields["function"] = user->function;
  }
  if (!raised.places.empty()) {
    fact.fields["handler_file"] = raised.places.back().file;
    fact.fields["handler_function"] = raised.places.back().function;
  }
  job.facts.push_back(std::move(fact));
}

}  // namespace

void add_exceptions(JobModel& job, const Look& look) {
  for (const stacks::ProcessStacks& stacks : look.stacks) {
    const Process* known = process(job, stacks.pid);
    if (known == nullptr) {
      continue;
    }
    const auto main = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                   [&](const auto& thread) { return thread.tid == stacks.pid; });
    if (main != stacks.threads.end() && main->handles) {
      add_exception(job, *known, *main->handles, Found::kHandled);
    }
    if (stacks.python && stacks.python->printed) {
      add_exception(job, *known, *stacks.python->printed, Found::kPrinted);
    }
    if (stacks.python && stacks.python->lost) {
      add_exception(job, *known, *stacks.python->lost, Found::kLostInTask);
    }
  }
}

}  // namespace ddpdoctor::model
