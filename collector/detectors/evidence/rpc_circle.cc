// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/rpc_circle.h"

#include <algorithm>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool is_rpc_process(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return model::has_native_frame(thread, "torch::distributed::rpc::");
  });
}

bool takes_without_limit(const model::Thread& thread) {
  const model::Frame* get = python_frame_in(thread, "/queue.py", {"get"});
  const auto timed = [](const auto& local) {
    return local.first == "timeout" && local.second != "None";
  };
  return get != nullptr && std::none_of(get->locals.begin(), get->locals.end(), timed) &&
         !(thread.waits_on && thread.waits_on->limit) && own_user_frame(thread) != nullptr;
}

/// C++ threads run what other ranks call; a Python thread could fill the queue.
bool only_rpc_could_help(const graph::Standing& standing) {
  const model::Process* process = standing.process;
  const model::Thread* main = process == nullptr ? nullptr : model::main_thread(*process);
  return main != nullptr && alive(*process) && takes_without_limit(*main) &&
         is_rpc_process(*process) &&
         std::none_of(process->threads.begin(), process->threads.end(), [main](const auto& one) {
           return &one != main && innermost_python(one) != nullptr;
         });
}

}  // namespace

std::vector<const graph::Standing*> rpc_circle(const graph::Examination& examination) {
  std::vector<const graph::Standing*> out;
  for (const graph::Standing& standing : examination.standings) {
    if (!only_rpc_could_help(standing)) {
      return {};
    }
    out.push_back(&standing);
  }
  return out.size() > 1 ? out : std::vector<const graph::Standing*>{};
}

}  // namespace ddpdoctor::detectors
