// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/rpc_pool.h"

#include <algorithm>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool runs_a_handler(const model::Thread& thread) {
  return python_frame_in(thread, "torch/distributed/rpc/internal.py", {"_run_function"}) !=
             nullptr &&
         model::has_native_frame(thread, "torch::distributed::rpc::");
}

/// Its handler waits, without a timeout, until another thread of the process has done something.
bool waits_for_another(const model::Thread& thread) {
  const model::Frame* inner = model::innermost_python(thread);
  return inner != nullptr && own_user_frame(thread) != nullptr && asleep(thread) &&
         model::is_of_own_threads(model::python_wait(*inner)) &&
         !(thread.waits_on && thread.waits_on->limit);
}

bool is_free(const model::Thread& thread) {
  return model::has_native_frame(thread, "c10::ThreadPool::main_loop") &&
         model::innermost_python(thread) == nullptr;
}

bool awaits_an_answer(const graph::Standing& standing) {
  return standing.thread != nullptr && asleep(*standing.thread) &&
         (model::has_native_frame(*standing.thread, "torch::jit::PythonFutureWrapper::wait") ||
          model::has_native_frame(*standing.thread, "torch::distributed::rpc::"));
}

/// All handlers of a process; empty if a thread of its pool is free or a Python thread works.
std::vector<const model::Thread*> waiting_handlers(const model::Process& process) {
  std::vector<const model::Thread*> out;
  for (const model::Thread& thread : process.threads) {
    const bool handles = runs_a_handler(thread);
    const bool works = model::innermost_python(thread) != nullptr && !asleep(thread);
    if (is_free(thread) || works || (handles && !waits_for_another(thread))) {
      return {};
    }
    if (handles) {
      out.push_back(&thread);
    }
  }
  return out;
}

}  // namespace

std::vector<FullRpcPool> full_rpc_pools(const graph::Examination& examination) {
  std::vector<FullRpcPool> out;
  for (const graph::Standing& standing : examination.standings) {
    const model::Process* process = standing.process;
    if (process == nullptr || !alive(*process)) {
      continue;
    }
    FullRpcPool pool{.process = process, .handlers = waiting_handlers(*process), .callers = {}};
    for (const graph::Standing& other : examination.standings) {
      if (other.rank != standing.rank && awaits_an_answer(other)) {
        pool.callers.insert(other.rank);
      }
    }
    if (!pool.handlers.empty() && pool.callers.size() > pool.handlers.size()) {
      out.push_back(std::move(pool));
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
