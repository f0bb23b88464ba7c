// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/exceptions_in_hand.h"

#include <algorithm>
#include <array>

#include "collector/detectors/evidence/handlers.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// Exceptions that control a program: an empty queue, the end of an iterator, an optional module.
bool steers(std::string_view exception) {
  constexpr std::array<std::string_view, 9> kTypes = {
      "StopIteration", "StopAsyncIteration",  "GeneratorExit",  "Empty",          "Full",
      "ImportError",   "ModuleNotFoundError", "AttributeError", "BlockingIOError"};
  const std::string_view type = exception.substr(0, exception.find(':'));
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

enum class Found { kHandled, kPrinted, kLostInTask };

Found found_as(const model::Fact& fact) {
  return fact.flag("lost_in_task").value_or(false) ? Found::kLostInTask
         : fact.flag("printed").value_or(false)    ? Found::kPrinted
                                                   : Found::kHandled;
}

std::optional<ExceptionInHand> exception_of(const model::JobModel& job,
                                            const graph::Standing& standing, Found found) {
  if (standing.process == nullptr) {
    return std::nullopt;
  }
  for (const model::Fact* fact : model::facts(job, "exception")) {
    const auto exception = fact->text("exception");
    if (fact->pid != standing.process->pid || !exception || found_as(*fact) != found) {
      continue;
    }
    ExceptionInHand out{.exception = *exception, .raised = {}};
    out.raised = {.file = fact->text("file").value_or(""),
                  .line = static_cast<int>(fact->number("line").value_or(0)),
                  .function = fact->text("function").value_or("")};
    const std::string file = fact->text("handler_file").value_or("");
    const std::string function = fact->text("handler_function").value_or("");
    out.in_users_hand = model::is_user_file(file) && !steers(*exception) &&
                        std::any_of(standing.callers.begin(), standing.callers.end(),
                                    [&](const model::CallSite& site) {
                                      return site.file == file && site.function == function;
                                    });
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ExceptionInHand> handled_by(const model::JobModel& job,
                                          const graph::Standing& standing) {
  return exception_of(job, standing, Found::kHandled);
}

bool leaves_a_with(const model::JobModel& job, const graph::Standing& standing) {
  if (standing.thread != nullptr && throws_into_generator(job, *standing.thread)) {
    return true;
  }
  const auto hand = handled_by(job, standing);
  return hand && !steers(hand->exception) &&
         std::any_of(
             standing.callers.begin(), standing.callers.end(), [](const model::CallSite& site) {
               return site.function.ends_with("__exit__") || site.function.ends_with("__aexit__");
             });
}

std::optional<ExceptionInHand> failed_with(const model::JobModel& job,
                                           const graph::Standing& standing) {
  if (auto printed = exception_of(job, standing, Found::kPrinted)) {
    return printed;
  }
  const bool waits = standing.activity == graph::Activity::kEventLoop && !standing.on_cpu;
  auto lost = waits ? exception_of(job, standing, Found::kLostInTask) : std::nullopt;
  if (lost) {
    lost->in_task = true;
  }
  return lost;
}

}  // namespace ddpdoctor::detectors
