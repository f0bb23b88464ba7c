// SPDX-License-Identifier: Apache-2.0
// c10d::ProcessGroupNCCL over the simulated device: the names and stacks of torch, with a build of
// torch without CUDA. A host enqueues its calls and runs ahead; `wait` blocks it for a moment, so
// that healthy jobs compute correct numbers as long as no call is late.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace at::cuda {

/// The end of a kernel on its stream.
struct CUDAEvent {
  void* event = nullptr;
  CUDAEvent();
  ~CUDAEvent();
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;
  [[nodiscard]] bool query() const;
};

}  // namespace at::cuda

namespace c10d {

struct NCCLComm {
  void* comm = nullptr;
  void* stream = nullptr;
};

class ProcessGroupNCCL : public Backend {
 public:
  struct Options : Backend::Options {
    Options() : Backend::Options("nccl") {}
    bool is_high_priority_stream = false;
    c10::intrusive_ptr<Backend> split_from;
    int64_t split_color = -1;
  };

  class WorkNCCL : public Work {
   public:
    WorkNCCL(int rank, OpType type) : Work(rank, type) {}
    bool isCompleted() override;
    bool isSuccess() const override {
      return true;
    }
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override;
    std::vector<at::Tensor> result() override {
      return outputs;
    }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override {
      return sequence;
    }

    std::shared_ptr<at::cuda::CUDAEvent> end = std::make_shared<at::cuda::CUDAEvent>();
    std::vector<at::Tensor> inputs, outputs;
    std::function<void()>
        finish;  // what the host does after completion: copies out of a flat tensor
    std::optional<size_t> recorded;
    uint64_t sequence = 0;
    bool barrier = false;

   private:
    void synchronizeInternal();
  };

  ProcessGroupNCCL(c10::intrusive_ptr<Store> store, int rank, int size,
                   c10::intrusive_ptr<Options> options);

  const std::string getBackendName() const override {
    return "nccl";
  }
  c10::intrusive_ptr<Backend::Options> getBackendOptions() override {
    return options_;
  }
  bool supportsSplitting() const override {
    return true;
  }
  bool supportsCoalescing() const override {
    return true;
  }
  void startCoalescing() override;
  c10::intrusive_ptr<Work> endCoalescing() override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override {
    return collective_;
  }
  void eagerConnectSingleDevice(at::Device device) override;
  void setTimeout(std::chrono::milliseconds) override {}
  void abort() override;
  void shutdown() override;
  void performNocolorSplit();

  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;
  using Result = c10::intrusive_ptr<Work>;
  Result broadcast(Tensors&, const BroadcastOptions&) override;
  Result allreduce(Tensors&, const AllreduceOptions&) override;
  Result allreduce_coalesced(Tensors&, const AllreduceCoalescedOptions&) override;
  Result reduce(Tensors&, const ReduceOptions&) override;
  Result allgather(Lists&, Tensors&, const AllgatherOptions&) override;
  Result _allgather_base(at::Tensor&, at::Tensor&, const AllgatherOptions&) override;
  Result allgather_into_tensor_coalesced(Tensors&, Tensors&, const AllgatherOptions&) override;
  Result gather(Lists&, Tensors&, const GatherOptions&) override;
  Result scatter(Tensors&, Lists&, const ScatterOptions&) override;
  Result reduce_scatter(Tensors&, Lists&, const ReduceScatterOptions&) override;
  Result _reduce_scatter_base(at::Tensor&, at::Tensor&, const ReduceScatterOptions&) override;
  Result reduce_scatter_tensor_coalesced(Tensors&, Tensors&, const ReduceScatterOptions&) override;
  Result alltoall_base(at::Tensor&, at::Tensor&, std::vector<int64_t>&, std::vector<int64_t>&,
                       const AllToAllOptions&) override;
  Result alltoall(Tensors&, Tensors&, const AllToAllOptions&) override;
  Result send(Tensors&, int to, int tag) override;
  Result recv(Tensors&, int from, int tag) override;
  Result barrier(const BarrierOptions&) override;

 private:
  using Launch = std::function<void(const NCCLComm&)>;
  Result collective(OpType type, const char* name, Tensors inputs, Tensors outputs,
                    const Launch& launch, std::function<void()> finish = {});
  Result pointToPoint(at::Tensor& tensor, int peer, OpType type);
  NCCLComm& initNCCLComm(const std::string& key, int rank, int size);
  Result enqueue(OpType type, const std::string& name, Tensors inputs, Tensors outputs,
                 const NCCLComm& comm, const Launch& launch, std::function<void()> finish,
                 bool message);

  c10::intrusive_ptr<Store> store_;
  c10::intrusive_ptr<Options> options_;
  std::map<std::string, NCCLComm> comms_;
  uint64_t collective_ = 0;
  uint64_t messages_ = 0;
  uint64_t operation_ = 0;
  int coalescing_ = 0;
  std::vector<c10::intrusive_ptr<WorkNCCL>> coalesced_;
  const size_t id_;
  std::shared_ptr<ProcessGroupStatus> status_ = std::make_shared<ProcessGroupStatus>();
};

}  // namespace c10d

namespace c10::cuda {

/// Makes a host that needs a value wait for what the default stream waits for. Has the name of
/// torch's function.
void memcpy_and_sync();

}  // namespace c10::cuda
