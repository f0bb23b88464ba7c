// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/ras.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "collector/model/questions.h"
#include "collector/sources/network/nccl_ras.h"

namespace ddpdoctor::monitor {
namespace {

/// A process with RAS's thread; any of them answers for the whole job.
const model::Process* with_ras(const model::JobModel& job) {
  const model::Observation* const now = model::latest(job);
  if (now == nullptr) {
    return nullptr;
  }
  const auto found =
      std::find_if(now->processes.begin(), now->processes.end(), [](const model::Process& process) {
        return std::any_of(
            process.threads.begin(), process.threads.end(),
            [](const model::Thread& thread) { return thread.name.starts_with("NCCL RAS"); });
      });
  return found == now->processes.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> two_ras_answers(model::JobModel& job) {
  const model::Process* const process = with_ras(job);
  if (process == nullptr) {
    return {};
  }
  const auto address = process->environment.find("NCCL_RAS_ADDR");
  const sources::RasQuestion question =
      sources::ras_question(address == process->environment.end() ? "" : address->second);
  std::vector<std::string> answers;
  for (int look = 0; look < 2; ++look) {
    if (look > 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    auto answer = sources::ask_ras(question);
    if (!answer) {
      job.coverage.warnings.push_back(answer.error().what);
      return {};
    }
    answers.push_back(std::move(*answer));
  }
  return answers;
}

}  // namespace ddpdoctor::monitor
