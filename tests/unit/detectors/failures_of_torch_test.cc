// SPDX-License-Identifier: Apache-2.0
// Exceptions whose type and place are torch's own: of the store, of CUDA in a forked child, of GPU
// memory that a library caught.
#include <string>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

Findings found(std::string_view kind, const std::string& log) {
  return asked(kind, job().log({}, log).build());
}

std::string at_store(const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"/srv/run.py\", line 20, in main\n"
         "    torch.distributed.init_process_group(backend)\n"
         "  File \"/opt/lib/python3.7/site-packages/torch/distributed/rendezvous.py\", line 143, "
         "in "
         "_env_rendezvous_handler\n"
         "    store = TCPStore(master_addr, master_port, start_daemon)\n" +
         exception + "\n";
}

TEST(StoreOfTorch, WhatItsConstructorRaisesIsAFactOfTheAddress) {
  for (const std::string exception :
       {"ValueError: host not found: Name or service not known",
        "RuntimeError: connect() timed out.", "RuntimeError: Connection refused",
        "RuntimeError: No route to host"}) {
    EXPECT_TRUE(found("rank-raised", at_store(exception)).empty()) << exception;
    const auto findings = found("master-unreachable", at_store(exception));
    ASSERT_EQ(findings.size(), 1U) << exception;
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
    EXPECT_EQ(findings[0].locations.at(0).line, 20);
    const bool name = exception.find("host not found") != std::string::npos;
    EXPECT_EQ(findings[0].summary.find("cannot resolve the host name") != std::string::npos, name);
  }
}

TEST(StoreOfTorch, AMissingVariableIsNoNetwork) {
  const std::string log = R"(Traceback (most recent call last):
  File "/srv/run.py", line 20, in main
    torch.distributed.init_process_group(backend)
  File "/opt/lib/python3.7/site-packages/torch/distributed/rendezvous.py", line 103, in _env_rendezvous_handler
    raise _env_error("RANK")
ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set
)";
  EXPECT_TRUE(found("master-unreachable", log).empty());
  const auto findings = found("rank-raised", log);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].fix.starts_with("Start the program with torchrun"));
}

TEST(StoreOfTorch, AUsersOwnExceptionBesideItIsTheUsers) {
  const std::string log = R"(Traceback (most recent call last):
  File "/srv/run.py", line 20, in main
    connect(address)
  File "/srv/run.py", line 9, in connect
    raise RuntimeError("Connection refused")
RuntimeError: Connection refused
)";
  EXPECT_TRUE(found("master-unreachable", log).empty());
  EXPECT_EQ(found("rank-raised", log).size(), 1U);
}

const std::string kLostWorker = R"(Traceback (most recent call last):
  File "/srv/run.py", line 31, in epoch
    for batch in loader:
  File "/opt/lib/python3.9/site-packages/torch/utils/data/_utils/signal_handling.py", line 66, in handler
    _error_if_any_worker_fails()
RuntimeError: DataLoader worker (pid 617) is killed by signal: Aborted. 
)";

TEST(CudaInAChild, AWorkerThatAbortedWithAnInitializationErrorInheritedCuda) {
  const std::string what =
      "terminate called after throwing an instance of 'c10::Error'\n"
      "  what():  CUDA error: initialization error\n";
  const auto findings = found("fork-after-cuda", what + kLostWorker);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with("DataLoader worker 617 used CUDA after a fork"));
  EXPECT_TRUE(found("fork-after-cuda", kLostWorker).empty());
  EXPECT_TRUE(found("fork-after-cuda", what).empty());
  EXPECT_TRUE(
      found("fork-after-cuda",
            "  what():  CUDA error: an illegal memory access was encountered\n" + kLostWorker)
          .empty());
}

TEST(CudaInAChild, TheFramesOfAWorkerShowTheFork) {
  const std::string raised =
      "  File \"/srv/data.py\", line 44, in __getitem__\n    return self.table[i].item()\n"
      "RuntimeError: CUDA error: initialization error\n";
  const auto findings = found(
      "fork-after-cuda",
      "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\n"
      "Original Traceback (most recent call last):\n"
      "  File \"/opt/lib/python3.9/site-packages/torch/utils/data/_utils/worker.py\", line 302, in "
      "_worker_loop\n    data = fetcher.fetch(index)\n" +
          raised);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 44);
  EXPECT_TRUE(found("fork-after-cuda", "Traceback (most recent call last):\n" + raised).empty());
}

const std::string kCaught =
    "| WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 20.00 MiB "
    "(GPU 0; 7.93 GiB total capacity; 7.20 GiB already allocated);\n Skipping batch\n";

TEST(CaughtMemory, TheRankThatSkippedItsBatchIsTheCause) {
  const std::string out_of_step = R"(Traceback (most recent call last):
  File "/srv/fairseq/utils.py", line 169, in all_gather_list
    result.append(pickle.loads(buffer))
_pickle.UnpicklingError: invalid load key, '\x00'.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/fairseq/train.py", line 142, in train
    log_output = trainer.train_step(samples)
  File "/srv/fairseq/utils.py", line 173, in all_gather_list
    raise Exception(
Exception: Unable to unpickle data from other workers. all_gather_list requires all workers to enter the function together
)";
  const auto findings = found("rank-raised", kCaught + out_of_step);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_TRUE(findings[0].summary.starts_with("a rank on GPU 0 ran out of GPU memory"));
  EXPECT_TRUE(found("rank-raised", kCaught).empty());  // all may have skipped it
  EXPECT_TRUE(found("rank-raised", out_of_step).empty());
  std::string steps;
  for (int step = 0; step < 9; ++step) {
    steps += "step " + std::to_string(step) + " loss 0.3\n";
  }
  EXPECT_TRUE(found("rank-raised", kCaught + steps + out_of_step).empty())
      << "it was in step again";
}

TEST(CaughtMemory, AnErrorThatEndedItsProgramWasNotCaught) {
  const std::string raised = R"(Traceback (most recent call last):
  File "/srv/run.py", line 31, in step
    loss.backward()
RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity)
)";
  const auto findings = found("rank-raised", raised);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with("a rank raised"));
}

const std::string kUnguarded = R"(Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/usr/lib/python3.10/multiprocessing/spawn.py", line 125, in _main
    prepare(preparation_data)
  File "/srv/run.py", line 58, in <module>
    for batch in loader:
  File "/usr/lib/python3.10/multiprocessing/spawn.py", line 134, in _check_not_importing_main
    raise RuntimeError('''
RuntimeError: 
        An attempt has been made to start a new process before the
        current process has finished its bootstrapping phase.
)";
const std::string kExited = R"(Traceback (most recent call last):
  File "/srv/run.py", line 60, in <module>
    for batch in loader:
  File "/opt/lib/python3.10/site-packages/torch/utils/data/dataloader.py", line 1297, in _try_get_data
    raise RuntimeError(
RuntimeError: DataLoader worker (pid(s) 31044) exited unexpectedly
)";

TEST(UnguardedProgram, TheWorkerThatCouldNotStartNamesTheLine) {
  const auto findings = found("dataloader-worker-raised", kUnguarded + kExited);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 58);
  EXPECT_TRUE(findings[0].fix.starts_with("Put the code that starts processes below"));
  EXPECT_TRUE(found("dataloader-worker-killed", kUnguarded + kExited).empty());
  EXPECT_TRUE(found("dataloader-worker-raised", kExited).empty());
  EXPECT_EQ(found("dataloader-worker-killed", kExited).size(), 1U);
}

TEST(UnguardedProgram, WithoutADataLoaderTheChildRaised) {
  EXPECT_TRUE(found("dataloader-worker-raised", kUnguarded).empty());
  const auto findings = found("rank-raised", kUnguarded);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].fix.starts_with("Put the code that starts processes below"));
}

TEST(LostWorker, TheTwoReportsOfTorchAreOneFinding) {
  const auto findings = found("dataloader-worker-killed", R"(Traceback (most recent call last):
  File "/usr/lib/python3.8/threading.py", line 306, in wait
    gotit = waiter.acquire(True, timeout)
  File "/opt/lib/python3.8/site-packages/torch/utils/data/_utils/signal_handling.py", line 66, in handler
    _error_if_any_worker_fails()
RuntimeError: DataLoader worker (pid 31044) is killed by signal: Killed. 

The above exception was the direct cause of the following exception:

)" + kExited);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.at(0).line, 60);
  EXPECT_NE(findings[0].summary.find("to a signal (run.py:60)"), std::string::npos);
  const std::string code =
      "RuntimeError: DataLoader worker (pid 31044) exited unexpectedly with "
      "exit code 1. Details are lost due to multiprocessing.\n\n";
  EXPECT_EQ(found("dataloader-worker-killed", code + kExited).size(), 1U);
  const std::string of_another =
      "RuntimeError: DataLoader worker (pid 7) exited unexpectedly with exit code 1.\n\n";
  EXPECT_EQ(found("dataloader-worker-killed", of_another + kExited).size(), 2U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
