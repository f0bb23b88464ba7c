// SPDX-License-Identifier: Apache-2.0
// The diagnosis that the viewer's tests render: the hang of DESIGN §4.4, written by hand so that it
// does not depend on any detector.
#pragma once

#include "collector/diagnosis/diagnosis.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::tests {

inline constexpr const char* kScript = "/srv/train.py";

/// Ranks 0, 1 and 3 are in backward; rank 2 is in a barrier of evaluate().
inline model::JobModel hung_job() {
  model::JobModel hung =
      job()
          .ranks(4)
          .stack(kAll,
                 "native:epoll_wait@libc.so.6 | native:gloo::wait@libtorch_cpu.so | "
                 "py:_engine_run_backward@/usr/lib/python3/site-packages/torch/autograd/"
                 "graph.py:824 | "
                 "py:Tensor.backward@/usr/lib/python3/site-packages/torch/_tensor.py:581 | "
                 "py:train_step@/srv/train.py:88 | py:fit@/srv/train.py:97 | "
                 "py:main@/srv/train.py:104 | "
                 "py:<module>@/srv/train.py:110 | native:main@python3.11")
          .stack(2,
                 "native:epoll_wait@libc.so.6 | "
                 "py:barrier@/usr/lib/python3/site-packages/torch/distributed/"
                 "distributed_c10d.py:4830 | "
                 "py:_exception_logger.<locals>.wrapper@/usr/lib/python3/site-packages/torch/"
                 "distributed/c10d_logger.py:81 | "
                 "py:evaluate@/srv/train.py:61 | py:fit@/srv/train.py:97 | "
                 "py:main@/srv/train.py:104 | "
                 "py:<module>@/srv/train.py:110 | native:main@python3.11")
          .seconds_without_progress(252)
          .command({"torchrun", "--nproc_per_node=4", "train.py"})
          .build();
  hung.sources["/srv/train.py"] = {
      {57, "    if rank == 2:"}, {61, "        dist.barrier()"}, {88, "    loss.backward()"}};
  return hung;
}

inline detectors::Finding conditional_barrier() {
  return {.kind = "rank-conditional-collective",
          .confidence = detectors::Confidence::kCertain,
          .summary = "rank 2 never joined all_reduce #1043",
          .culprits = {2},
          .waiting = {0, 1, 3},
          .locations = {{.rank = 2,
                         .ranks = {2},
                         .file = kScript,
                         .line = 61,
                         .function = "evaluate",
                         .note = "rank 2 is here, in evaluate"},
                        {.rank = {},
                         .ranks = {0, 1, 3},
                         .file = kScript,
                         .line = 88,
                         .function = "train_step",
                         .note = "ranks 0-1,3 have waited here for 4 min 12 s"},
                        {.rank = {},
                         .ranks = {},
                         .file = kScript,
                         .line = 57,
                         .function = "evaluate",
                         .note = "the branch that separates them"}},
          .evidence = {{.rank = 2,
                        .text = "has enqueued 1042 collectives in default_pg, the others 1043"}},
          .fix = "call evaluate() on every rank, or leave the barrier out of it.",
          .details = {{"parameters", std::vector<std::string>{"router.1.weight"}}}};
}

/// A diagnosis of `job` with these findings, made without running detectors.
inline diagnosis::Diagnosis diagnosis_of(const model::JobModel& job, detectors::Findings findings,
                                         diagnosis::Verdict verdict = diagnosis::Verdict::kHang) {
  return {.job = job,
          .verdict = verdict,
          .findings = std::move(findings),
          .detectors_run = {"missing-rank", "rank-conditional-collective"},
          .examination = {.job = job, .standings = {}, .groups = {}, .waits = {}},
          .stack_diff = diagnosis::stack_diff(job)};
}

}  // namespace ddpdoctor::tests
