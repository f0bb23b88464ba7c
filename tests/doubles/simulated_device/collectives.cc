// SPDX-License-Identifier: Apache-2.0
// The collectives of ProcessGroupNCCL as calls of NCCL, implemented as in torch.
#include "nccl.h"
#include "process_group.h"

namespace c10d {
namespace {

std::size_t count(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

/// ProcessGroupNCCL requires dense tensors on one device.
void check(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& one : tensors) {
    TORCH_CHECK(one.is_contiguous(), "Tensors must be contiguous");
  }
}

std::vector<int64_t> splits_or_even(const std::vector<int64_t>& splits, const at::Tensor& tensor,
                                    int size) {
  return splits.empty()
             ? std::vector<int64_t>(static_cast<std::size_t>(size), tensor.size(0) / size)
             : splits;
}

}  // namespace

ProcessGroupNCCL::Result ProcessGroupNCCL::broadcast(Tensors& tensors,
                                                     const BroadcastOptions& opts) {
  check(tensors);
  at::Tensor& one = tensors[0];
  return collective(OpType::BROADCAST, "broadcast", tensors, tensors, [&](const NCCLComm& on) {
    ncclBroadcast(one.data_ptr(), one.data_ptr(), count(one), nccl_type(one),
                  static_cast<int>(opts.rootRank), on.comm, on.stream);
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::allreduce(Tensors& tensors,
                                                     const AllreduceOptions& opts) {
  check(tensors);
  at::Tensor& one = tensors[0];
  return collective(OpType::ALLREDUCE, "all_reduce", tensors, tensors, [&](const NCCLComm& on) {
    ncclAllReduce(one.data_ptr(), one.data_ptr(), count(one), nccl_type(one),
                  nccl_op(opts.reduceOp), on.comm, on.stream);
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::allreduce_coalesced(
    Tensors& tensors, const AllreduceCoalescedOptions& opts) {
  check(tensors);
  return collective(OpType::ALLREDUCE_COALESCED, "allreduce_coalesced", tensors, tensors,
                    [&](const NCCLComm& on) {
                      ncclGroupStart();
                      for (at::Tensor& one : tensors) {
                        ncclAllReduce(one.data_ptr(), one.data_ptr(), count(one), nccl_type(one),
                                      nccl_op(opts.reduceOp), on.comm, on.stream);
                      }
                      ncclGroupEnd();
                    });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::reduce(Tensors& tensors, const ReduceOptions& opts) {
  check(tensors);
  at::Tensor& one = tensors[0];
  return collective(OpType::REDUCE, "reduce", tensors, tensors, [&](const NCCLComm& on) {
    ncclReduce(one.data_ptr(), one.data_ptr(), count(one), nccl_type(one), nccl_op(opts.reduceOp),
               static_cast<int>(opts.rootRank), on.comm, on.stream);
  });
}

/// Through a flat tensor if all have one size; otherwise each rank broadcasts its own.
ProcessGroupNCCL::Result ProcessGroupNCCL::allgather(Lists& outputs, Tensors& inputs,
                                                     const AllgatherOptions&) {
  check(inputs);
  at::Tensor& input = inputs[0];
  Tensors out = outputs[0];
  const bool even = std::all_of(
      out.begin(), out.end(), [&](const at::Tensor& one) { return one.sizes() == out[0].sizes(); });
  if (even) {
    at::Tensor flat =
        at::empty({static_cast<int64_t>(out.size()) * out[0].numel()}, out[0].options());
    return collective(
        OpType::ALLGATHER, "all_gather", inputs, out,
        [&](const NCCLComm& on) {
          ncclAllGather(input.data_ptr(), flat.data_ptr(), count(input), nccl_type(input), on.comm,
                        on.stream);
        },
        [flat, out]() mutable {
          for (std::size_t i = 0; i < out.size(); ++i) {
            const int64_t size = out[i].numel();
            out[i].copy_(flat.narrow(0, static_cast<int64_t>(i) * size, size).view(out[i].sizes()));
          }
        });
  }
  out[static_cast<std::size_t>(rank_)].copy_(input);
  return collective(OpType::ALLGATHER, "all_gather", inputs, out, [&](const NCCLComm& on) {
    ncclGroupStart();
    for (int root = 0; root < size_; ++root) {
      at::Tensor& one = out[static_cast<std::size_t>(root)];
      ncclBroadcast(one.data_ptr(), one.data_ptr(), count(one), nccl_type(one), root, on.comm,
                    on.stream);
    }
    ncclGroupEnd();
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                           const AllgatherOptions&) {
  check({output, input});
  return collective(OpType::_ALLGATHER_BASE, "_all_gather_base", {input}, {output},
                    [&](const NCCLComm& on) {
                      ncclAllGather(input.data_ptr(), output.data_ptr(), count(input),
                                    nccl_type(input), on.comm, on.stream);
                    });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const AllgatherOptions&) {
  return collective(OpType::COALESCED, "all_gather_into_tensor_coalesced", inputs, outputs,
                    [&](const NCCLComm& on) {
                      ncclGroupStart();
                      for (std::size_t i = 0; i < inputs.size(); ++i) {
                        ncclAllGather(inputs[i].data_ptr(), outputs[i].data_ptr(), count(inputs[i]),
                                      nccl_type(inputs[i]), on.comm, on.stream);
                      }
                      ncclGroupEnd();
                    });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::gather(Lists& outputs, Tensors& inputs,
                                                  const GatherOptions& opts) {
  const int root = static_cast<int>(opts.rootRank);
  at::Tensor& input = inputs[0];
  Tensors out = outputs.empty() ? Tensors{} : outputs[0];
  return collective(OpType::GATHER, "gather", inputs, out, [&](const NCCLComm& on) {
    ncclGroupStart();
    ncclSend(input.data_ptr(), count(input), nccl_type(input), root, on.comm, on.stream);
    for (int peer = 0; peer < static_cast<int>(out.size()); ++peer) {
      at::Tensor& one = out[static_cast<std::size_t>(peer)];
      ncclRecv(one.data_ptr(), count(one), nccl_type(one), peer, on.comm, on.stream);
    }
    ncclGroupEnd();
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::scatter(Tensors& outputs, Lists& inputs,
                                                   const ScatterOptions& opts) {
  const int root = static_cast<int>(opts.rootRank);
  at::Tensor& output = outputs[0];
  Tensors in = inputs.empty() ? Tensors{} : inputs[0];
  return collective(OpType::SCATTER, "scatter", in, outputs, [&](const NCCLComm& on) {
    ncclGroupStart();
    for (int peer = 0; peer < static_cast<int>(in.size()); ++peer) {
      at::Tensor& one = in[static_cast<std::size_t>(peer)];
      ncclSend(one.data_ptr(), count(one), nccl_type(one), peer, on.comm, on.stream);
    }
    ncclRecv(output.data_ptr(), count(output), nccl_type(output), root, on.comm, on.stream);
    ncclGroupEnd();
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::reduce_scatter(Tensors& outputs, Lists& inputs,
                                                          const ReduceScatterOptions& opts) {
  at::Tensor& output = outputs[0];
  Tensors in = inputs[0];
  for (at::Tensor& one : in) {
    one = one.reshape({-1});
  }
  at::Tensor flat = at::cat(in);
  return collective(
      OpType::REDUCE_SCATTER, "reduce_scatter", {flat}, outputs, [&](const NCCLComm& on) {
        ncclReduceScatter(flat.data_ptr(), output.data_ptr(), count(output), nccl_type(output),
                          nccl_op(opts.reduceOp), on.comm, on.stream);
      });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::_reduce_scatter_base(at::Tensor& output,
                                                                at::Tensor& input,
                                                                const ReduceScatterOptions& opts) {
  check({output, input});
  return collective(OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input}, {output},
                    [&](const NCCLComm& on) {
                      ncclReduceScatter(input.data_ptr(), output.data_ptr(), count(output),
                                        nccl_type(output), nccl_op(opts.reduceOp), on.comm,
                                        on.stream);
                    });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const ReduceScatterOptions& opts) {
  return collective(OpType::COALESCED, "reduce_scatter_tensor_coalesced", inputs, outputs,
                    [&](const NCCLComm& on) {
                      ncclGroupStart();
                      for (std::size_t i = 0; i < inputs.size(); ++i) {
                        ncclReduceScatter(inputs[i].data_ptr(), outputs[i].data_ptr(),
                                          count(outputs[i]), nccl_type(outputs[i]),
                                          nccl_op(opts.reduceOp), on.comm, on.stream);
                      }
                      ncclGroupEnd();
                    });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                         std::vector<int64_t>& out_splits,
                                                         std::vector<int64_t>& in_splits,
                                                         const AllToAllOptions&) {
  check({output, input});
  const auto outs = splits_or_even(out_splits, output, size_);
  const auto ins = splits_or_even(in_splits, input, size_);
  const int64_t out_row = output.size(0) > 0 ? output.numel() / output.size(0) : 1;
  const int64_t in_row = input.size(0) > 0 ? input.numel() / input.size(0) : 1;
  return collective(
      OpType::ALLTOALL_BASE, "all_to_all", {input}, {output}, [&](const NCCLComm& on) {
        auto* to = static_cast<char*>(output.data_ptr());
        const auto* from = static_cast<const char*>(input.data_ptr());
        ncclGroupStart();
        for (std::size_t peer = 0; peer < static_cast<std::size_t>(size_); ++peer) {
          const auto sent = static_cast<std::size_t>(ins[peer] * in_row);
          const auto got = static_cast<std::size_t>(outs[peer] * out_row);
          ncclSend(from, sent, nccl_type(input), static_cast<int>(peer), on.comm, on.stream);
          ncclRecv(to, got, nccl_type(output), static_cast<int>(peer), on.comm, on.stream);
          from += sent * input.element_size();
          to += got * output.element_size();
        }
        ncclGroupEnd();
      });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::alltoall(Tensors& outputs, Tensors& inputs,
                                                    const AllToAllOptions&) {
  check(outputs);
  check(inputs);
  return collective(OpType::ALLTOALL, "all_to_all", inputs, outputs, [&](const NCCLComm& on) {
    ncclGroupStart();
    for (std::size_t peer = 0; peer < static_cast<std::size_t>(size_); ++peer) {
      ncclSend(inputs[peer].data_ptr(), count(inputs[peer]), nccl_type(inputs[peer]),
               static_cast<int>(peer), on.comm, on.stream);
      ncclRecv(outputs[peer].data_ptr(), count(outputs[peer]), nccl_type(outputs[peer]),
               static_cast<int>(peer), on.comm, on.stream);
    }
    ncclGroupEnd();
  });
}

ProcessGroupNCCL::Result ProcessGroupNCCL::send(Tensors& tensors, int to, int) {
  check(tensors);
  return pointToPoint(tensors[0], to, OpType::SEND);
}

ProcessGroupNCCL::Result ProcessGroupNCCL::recv(Tensors& tensors, int from, int) {
  check(tensors);
  return pointToPoint(tensors[0], from, OpType::RECV);
}

/// An all_reduce of one number; `wait` blocks the host until it is complete.
ProcessGroupNCCL::Result ProcessGroupNCCL::barrier(const BarrierOptions&) {
  at::Tensor one = at::zeros({1}, at::kFloat);
  return collective(OpType::BARRIER, "all_reduce_barrier", {one}, {one}, [&](const NCCLComm& on) {
    ncclAllReduce(one.data_ptr(), one.data_ptr(), 1, nccl_type(one), 0, on.comm, on.stream);
  });
}

}  // namespace c10d
