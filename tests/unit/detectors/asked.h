// SPDX-License-Identifier: Apache-2.0
// The findings of one detector on a job, and stacks that many tests need.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "collector/detectors/detector.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::detectors {

inline Findings asked(std::string_view kind, const model::JobModel& job) {
  const Detector* detector = find(kind);
  if (detector == nullptr) {
    ADD_FAILURE() << "no detector " << kind;
    return {};
  }
  return detector->detect(graph::examine(job));
}

/// The findings of one detector on a log alone; no rank is known to have written it.
inline Findings asked_of_log(std::string_view kind, const std::string& text) {
  return asked(kind, tests::job().log({}, text).build());
}

/// The same job with everything listed in reverse order.
inline model::JobModel reversed(model::JobModel job) {
  for (model::Observation& observation : job.observations) {
    std::reverse(observation.processes.begin(), observation.processes.end());
  }
  std::reverse(job.facts.begin(), job.facts.end());
  return job;
}

/// A finding without its wording: for comparing two diagnoses of one job.
inline std::string essence(const Findings& findings) {
  std::string out;
  for (const Finding& finding : findings) {
    out += finding.kind + " " + finding.culprits.ranges() + " waiting " + finding.waiting.ranges();
    out += " " + std::string(confidence_name(finding.confidence));
    for (const Location& location : finding.locations) {
      out += " " + location.file + ":" + std::to_string(location.line);
    }
    out += "\n";
  }
  return out;
}

/// True if no finding is at least likely.
inline bool nothing_likely(const Findings& findings) {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.confidence == Confidence::kPossible;
  });
}

inline const std::string kInBarrier =
    "native:__futex_abstimed_wait_common64@libc.so.6 | native:c10d::Work::wait@libtorch_cpu.so | "
    "py:barrier@/opt/site-packages/torch/distributed/distributed_c10d.py:4830 | "
    "py:main@/srv/train.py:40";

inline const std::string kInBatchWait =
    "native:__poll@libc.so.6 | py:select@/usr/lib/python3.11/selectors.py:415 | "
    "py:wait@/usr/lib/python3.11/multiprocessing/connection.py:930 | "
    "py:get@/usr/lib/python3.11/multiprocessing/queues.py:113 | "
    "py:_MultiProcessingDataLoaderIter._try_get_data@/opt/site-packages/torch/utils/data/"
    "dataloader.py:1290 | "
    "py:_MultiProcessingDataLoaderIter._get_data@/opt/site-packages/torch/utils/data/"
    "dataloader.py:1460 | "
    "py:_MultiProcessingDataLoaderIter._next_data@/opt/site-packages/torch/utils/data/"
    "dataloader.py:1510 | "
    "py:main@/srv/train.py:20";

/// The outer frames of a forked worker: its own start, then what its parent was doing.
inline const std::string kForkedWorker =
    "py:_worker_loop@/opt/site-packages/torch/utils/data/_utils/worker.py:349 | "
    "py:BaseProcess.run@/usr/lib/python3.11/multiprocessing/process.py:108 | "
    "py:BaseProcess._bootstrap@/usr/lib/python3.11/multiprocessing/process.py:314 | "
    "py:Popen._launch@/usr/lib/python3.11/multiprocessing/popen_fork.py:71 | "
    "py:main@/srv/train.py:20";

inline const std::string kForkedChild =
    "py:BaseProcess.run@/usr/lib/python3.11/multiprocessing/process.py:108 | "
    "py:BaseProcess._bootstrap@/usr/lib/python3.11/multiprocessing/process.py:314 | "
    "py:Popen._launch@/usr/lib/python3.11/multiprocessing/popen_fork.py:71 | "
    "py:main@/srv/train.py:20";

inline const std::string kIdleWorker =
    "native:__poll@libc.so.6 | py:get@/usr/lib/python3.11/multiprocessing/queues.py:113 | " +
    kForkedWorker;

}  // namespace ddpdoctor::detectors
