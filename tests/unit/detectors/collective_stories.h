// SPDX-License-Identifier: Apache-2.0
// Stacks in collectives, and a training job: shared by the tests of the collective detectors.
#pragma once

#include <algorithm>
#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {

using tests::job;
using tests::JobBuilder;
using tests::kAll;

inline const std::string kTrain = "/srv/train.py";

/// A stack in this function of torch.distributed, called from the user's frames
/// ("py:f@/srv/train.py~text | …").
inline std::string in(const std::string& operation, const std::string& user,
                      const std::string& locals = {}) {
  return "native:pthread_cond_wait | native:c10d::Work::wait | py:" + operation +
         (locals.empty() ? "" : "{" + locals + "}") +
         "@/v/site-packages/torch/distributed/distributed_c10d.py:3100 | "
         "py:_exception_logger.<locals>.wrapper@/v/site-packages/torch/distributed/"
         "c10d_logger.py:83 | " +
         user;
}

inline std::string in_backward(const std::string& user) {
  return "native:pthread_cond_wait | native:c10d::Work::wait | "
         "native:c10d::Reducer::finalize_backward | "
         "py:_engine_run_backward@/v/site-packages/torch/autograd/graph.py:850 | "
         "py:Tensor.backward@/v/site-packages/torch/_tensor.py:630 | " +
         user;
}

inline std::string in_ddp_forward(const std::string& user) {
  return "native:pthread_cond_wait | native:c10d::Work::wait | native:c10d::broadcast_coalesced | "
         "py:DistributedDataParallel._sync_buffers@/v/site-packages/torch/nn/parallel/"
         "distributed.py:2425 | "
         "py:DistributedDataParallel._pre_forward@/v/site-packages/torch/nn/parallel/"
         "distributed.py:1782 | "
         "py:DistributedDataParallel.forward@/v/site-packages/torch/nn/parallel/"
         "distributed.py:1886 | " +
         user;
}

/// "py:main@/srv/train.py~text"
inline std::string at(const std::string& function, const std::string& text) {
  return "py:" + function + "@" + kTrain + "~" + text;
}

/// The same for a recorded call's frames.
inline std::string site(const std::string& function, const std::string& text) {
  return function + "@" + kTrain + "~" + text;
}

/// The `for` loops of the user's function with this name, outermost first, in every snapshot.
inline void put_loops(model::JobModel& told, model::Rank rank, const std::string& function,
                      const std::vector<model::Iteration>& loops) {
  for (model::Observation& look : told.observations) {
    for (model::Process& process : look.processes) {
      for (model::Thread& thread : process.threads) {
        for (model::Frame& frame : thread.frames) {
          if (process.rank == rank && frame.function == function) {
            frame.loops = loops;
          }
        }
      }
    }
  }
}

inline model::Iteration over(std::string_view what, std::int64_t done, std::int64_t total) {
  return {.over = std::string(what), .done = done, .left = total - done};
}

inline model::JobModel records_reversed(model::JobModel told) {
  told = reversed(std::move(told));
  std::reverse(told.collectives.begin(), told.collectives.end());
  return told;
}

/// The job as it would appear while it runs.
inline model::JobModel moving(model::JobModel told) {
  told.progress = model::Progress::kMoving;
  return told;
}

}  // namespace ddpdoctor::detectors
