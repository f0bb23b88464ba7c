// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <pthread.h>
#include <thread>

#include <torch/csrc/distributed/c10d/FlightRecorderDetail.hpp>

#include "driver.h"
#include "nccl.h"

namespace at::cuda {

CUDAEvent::CUDAEvent() {
  cuEventCreate(&event, 0);
}
CUDAEvent::~CUDAEvent() {
  cuEventDestroy_v2(event);
}
bool CUDAEvent::query() const {
  return cuEventQuery(event) == 0;
}

}  // namespace at::cuda

namespace c10d {

template <>
float getDurationFromEvent<at::cuda::CUDAEvent>(at::cuda::CUDAEvent&, at::cuda::CUDAEvent&) {
  return 0;
}
template struct FlightRecorder<at::cuda::CUDAEvent>;

namespace {

using Clock = std::chrono::steady_clock;
using Recorder = FlightRecorder<at::cuda::CUDAEvent>;
using WorkPtr = c10::intrusive_ptr<ProcessGroupNCCL::WorkNCCL>;

/// How long a host waits for a call: longer than a healthy call takes on a loaded machine.
constexpr auto kStay = std::chrono::seconds(2);

// Never destroyed: the watchdog's thread outlives static objects.
std::mutex& mutex = *new std::mutex;
std::deque<WorkPtr>& unfinished =
    *new std::deque<WorkPtr>;  // keeps their tensors until the device has finished with them
std::deque<WorkPtr>& unrecorded =
    *new std::deque<WorkPtr>;  // ended, but not yet reported to the recorder

void finish_what_ended() {
  std::vector<WorkPtr> ended;
  {
    const std::lock_guard lock(mutex);
    while (!unfinished.empty() && unfinished.front()->end->query()) {
      ended.push_back(unfinished.front());
      unrecorded.push_back(unfinished.front());
      unfinished.pop_front();
    }
  }
  for (const WorkPtr& work : ended) {
    if (work->finish) {
      const at::NoGradGuard guard;
      work->finish();
    }
  }
}

bool nothing_is_late(const ProcessGroupNCCL::WorkNCCL& work) {
  static std::atomic<bool> behind{false};
  if (behind.exchange(false)) {
    const std::lock_guard lock(mutex);
    if (!unfinished.empty() && unfinished.front().get() != &work &&
        !unfinished.front()->end->query()) {
      behind = true;
      return false;
    }
  }
  const auto end = Clock::now() + kStay;
  while (!work.end->query()) {
    if (Clock::now() > end) {
      behind = true;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// The thread that tells the recorder which calls have ended.
void watchdog() {
  pthread_setname_np(pthread_self(), "pt_nccl_watchdg");
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::lock_guard lock(mutex);
    for (const WorkPtr& work : unfinished) {
      if (work->recorded && work->end->query()) {
        Recorder::get()->retire_id(work->recorded, false);
        work->recorded.reset();
      }
    }
    for (; !unrecorded.empty(); unrecorded.pop_front()) {
      Recorder::get()->retire_id(unrecorded.front()->recorded, false);
    }
  }
}

std::atomic<size_t> groups{0};

}  // namespace

bool ProcessGroupNCCL::WorkNCCL::isCompleted() {
  const bool over = end->query();
  finish_what_ended();
  return over;
}

void ProcessGroupNCCL::WorkNCCL::synchronizeInternal() {
  cuStreamWaitEvent(nullptr, end->event, 0);
  nothing_is_late(*this);
  if (barrier) {
    cudaStreamSynchronize(nullptr);
  }
  finish_what_ended();
}

void ProcessGroupNCCL::WorkNCCL::synchronize() {
  synchronizeInternal();
}

bool ProcessGroupNCCL::WorkNCCL::wait(std::chrono::milliseconds) {
  synchronizeInternal();
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> ProcessGroupNCCL::WorkNCCL::getFuture() {
  synchronizeInternal();
  auto future =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  future->markCompleted(at::IValue(outputs));
  return future;
}

ProcessGroupNCCL::ProcessGroupNCCL(c10::intrusive_ptr<Store> store, int rank, int size,
                                   c10::intrusive_ptr<Options> options)
    : Backend(rank, size), store_(std::move(store)), options_(std::move(options)), id_(groups++) {
  if (id_ == 0) {
    std::thread(watchdog).detach();
  }
  init();
}

NCCLComm& ProcessGroupNCCL::initNCCLComm(const std::string& key, int rank, int size) {
  NCCLComm& comm = comms_[key];
  if (comm.comm != nullptr) {
    return comm;
  }
  TORCH_CHECK(cuInit(0) == 0, "CUDA error: initialization error");
  auto* const parent = dynamic_cast<ProcessGroupNCCL*>(options_->split_from.get());
  if (parent != nullptr && key == "0" && parent->comms_.count("0") != 0) {
    ncclCommSplit(parent->comms_["0"].comm, static_cast<int>(options_->split_color), rank,
                  &comm.comm, nullptr);
  } else {
    UniqueId id{};
    if (rank == 0) {
      ncclGetUniqueId(&id);
      store_->set(key, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
    } else {
      const auto bytes = store_->get(key);
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t*>(id.bytes));
    }
    TORCH_CHECK(ncclCommInitRank(&comm.comm, size, id, rank) == 0,
                "NCCL error: unhandled cuda error");
  }
  cuStreamCreate(&comm.stream, 0);
  std::vector<uint64_t> ranks = options_->global_ranks_in_group;
  for (int i = 0; ranks.empty() && i < size_; ++i) {
    ranks.push_back(static_cast<uint64_t>(i));
  }
  Recorder::get()->record_pg_ranks({pg_uid_, pg_desc_}, ranks);
  Recorder::get()->record_accelerator_version("2.28.9");
  return comm;
}

void ProcessGroupNCCL::eagerConnectSingleDevice(at::Device) {
  initNCCLComm("0", rank_, size_);
}

void ProcessGroupNCCL::performNocolorSplit() {
  const NCCLComm& comm = initNCCLComm("0", rank_, size_);
  void* none = nullptr;
  ncclCommSplit(comm.comm, -1, rank_, &none, nullptr);
}

void ProcessGroupNCCL::abort() {
  for (auto& [key, comm] : comms_) {
    if (comm.comm != nullptr) {
      ncclCommAbort(comm.comm);
    }
  }
}

/// Like torch's: a communicator is destroyed when its own kernels have completed.
void ProcessGroupNCCL::shutdown() {
  for (auto& [key, comm] : comms_) {
    if (comm.comm != nullptr) {
      cudaStreamSynchronize(comm.stream);
      ncclCommDestroy(comm.comm);
    }
  }
  finish_what_ended();
}

void ProcessGroupNCCL::startCoalescing() {
  ++coalescing_;
  ncclGroupStart();
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::endCoalescing() {
  --coalescing_;
  ncclGroupEnd();
  if (coalesced_.empty()) {
    return nullptr;
  }
  const NCCLComm& comm = comms_["0"];
  for (const auto& work : coalesced_) {
    cuEventRecord(work->end->event, comm.stream);
    const std::lock_guard lock(mutex);
    unfinished.push_back(work);
  }
  auto last = coalesced_.back();
  for (const auto& work : coalesced_) {
    last->inputs.insert(last->inputs.end(), work->inputs.begin(), work->inputs.end());
  }
  coalesced_.clear();
  return last;
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::enqueue(OpType type, const std::string& name,
                                                   Tensors inputs, Tensors outputs,
                                                   const NCCLComm& comm, const Launch& launch,
                                                   std::function<void()> finish, bool message) {
  finish_what_ended();
  auto work = c10::make_intrusive<WorkNCCL>(rank_, type);
  work->inputs = std::move(inputs);
  work->outputs = std::move(outputs);
  work->finish = std::move(finish);
  work->barrier = type == OpType::BARRIER;
  work->sequence = message ? messages_ : collective_;
  work->recorded = Recorder::get()->record(
      id_, {pg_uid_, pg_desc_}, collective_, messages_, ++operation_, "nccl:" + name, work->inputs,
      work->outputs, nullptr, work->end.get(), options_->timeout, status_, message);
  at::cuda::CUDAEvent before;  // what the host's tensors wait for
  cuEventRecord(before.event, nullptr);
  cuStreamWaitEvent(comm.stream, before.event, 0);
  launch(comm);
  status_->lastEnqueuedSeq = static_cast<int64_t>(collective_);
  if (coalescing_ > 0) {
    coalesced_.push_back(work);
    return work;
  }
  cuEventRecord(work->end->event, comm.stream);
  const std::lock_guard lock(mutex);
  unfinished.push_back(work);
  return work;
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::collective(OpType type, const char* name, Tensors inputs,
                                                      Tensors outputs, const Launch& launch,
                                                      std::function<void()> finish) {
  ++collective_;
  const NCCLComm& comm = initNCCLComm("0", rank_, size_);
  return enqueue(type, name, std::move(inputs), std::move(outputs), comm, launch, std::move(finish),
                 false);
}

/// A single message has a communicator of the two ranks, made when it is first needed; a message of
/// a batch uses that of the group.
c10::intrusive_ptr<Work> ProcessGroupNCCL::pointToPoint(at::Tensor& tensor, int peer, OpType type) {
  const bool sends = type == OpType::SEND;
  const bool batch = coalescing_ > 0;
  const int low = std::min(rank_, peer);
  const int high = std::max(rank_, peer);
  const int mine = rank_ <= peer ? 0 : 1;
  ++messages_;
  const NCCLComm& comm =
      batch ? initNCCLComm("0", rank_, size_)
            : initNCCLComm(std::to_string(low) + ":" + std::to_string(high), mine, 2);
  const std::string name =
      sends ? c10::str("send ", rank_, "->", peer) : c10::str("recv ", rank_, "<-", peer);
  const int to = batch ? peer : 1 - mine;
  const Launch launch = [&](const NCCLComm& on) {
    const std::size_t count = static_cast<std::size_t>(tensor.numel());
    if (sends) {
      ncclSend(tensor.data_ptr(), count, nccl_type(tensor), to, on.comm, on.stream);
    } else {
      ncclRecv(tensor.data_ptr(), count, nccl_type(tensor), to, on.comm, on.stream);
    }
  };
  return enqueue(type, name, {tensor}, {tensor}, comm, launch, {}, true);
}

}  // namespace c10d

namespace c10::cuda {

void memcpy_and_sync() {
  if (cuStreamQuery(nullptr) != 0) {
    cudaStreamSynchronize(nullptr);
  }
  c10d::finish_what_ended();
}

}  // namespace c10::cuda
