// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/blocked_call.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/graph/activity_rules.h"
#include "collector/graph/queued_messages.h"
#include "collector/graph/thread_calls.h"
#include "collector/model/building/polled_calls.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

constexpr std::size_t kMostDimensions = 16;

const std::string* local(const stacks::Frame& frame, std::string_view name) {
  for (const auto& [key, value] : frame.locals) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  text = base::trim(text);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<model::Rank> rank_local(const stacks::Frame& frame, std::string_view name) {
  const std::string* value = local(frame, name);
  return value == nullptr ? std::nullopt : number_in<model::Rank>(*value);
}

// "<ProcessGroup 0>", "ProcessGroup(1)", "0", "tp": the last word; None and the world constant are
// the default group.
std::string group_in(const model::JobModel& job, std::string_view text) {
  text = base::trim(text);
  while (!text.empty() && (text.back() == '>' || text.back() == ')' || text.back() == '\'')) {
    text.remove_suffix(1);
  }
  const std::size_t cut = text.find_last_of(" ('<");
  const std::string_view word = cut == std::string_view::npos ? text : text.substr(cut + 1);
  if (word.empty() || word == "None" || word.find("WORLD") != std::string_view::npos) {
    return world_group(job);
  }
  for (const model::ProcessGroup& group : job.groups) {
    if (group.id == word || group.name == word) {
      return group.id;
    }
  }
  return {};
}

// "Tensor(1000x7, float32)", "Tensor([1000, 7], float32)", "Tensor((), int64)".
void read_tensor(BlockedCall& call, std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t comma = text.rfind(',');
  const std::size_t close = text.rfind(')');
  if (!text.starts_with("Tensor") || open == std::string_view::npos ||
      comma == std::string_view::npos || close == std::string_view::npos || comma < open ||
      close < comma) {
    return;
  }
  std::vector<std::int64_t> shape;
  std::string_view dimensions = text.substr(open + 1, comma - open - 1);
  while (!dimensions.empty() && shape.size() < kMostDimensions) {
    const std::size_t digit = dimensions.find_first_of("0123456789");
    if (digit == std::string_view::npos) {
      break;
    }
    dimensions.remove_prefix(digit);
    const std::size_t end = std::min(dimensions.find_first_not_of("0123456789"), dimensions.size());
    const auto value = number_in<std::int64_t>(dimensions.substr(0, end));
    if (!value) {
      return;
    }
    shape.push_back(*value);
    dimensions.remove_prefix(end);
  }
  call.shape = std::move(shape);
  call.dtype = std::string(base::trim(text.substr(comma + 1, close - comma - 1)));
}

// "<RedOpType.SUM: 0>", "ReduceOp.MAX", "RedOpType.AVG" → "sum", "max", "avg".
std::string reduce_op_in(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) {
    return {};
  }
  std::string word;
  for (const char c : text.substr(dot + 1)) {
    if ((c < 'A' || c > 'Z') && c != '_') {
      break;
    }
    word += c == '_' ? c : static_cast<char>(c - 'A' + 'a');
  }
  return word;
}

bool in_c10d(const stacks::Frame& frame) {
  return frame.language == stacks::Language::kPython &&
         frame.file.find("distributed_c10d.py") != std::string::npos;
}

void read_arguments(BlockedCall& call, const model::JobModel& job, const stacks::Frame& frame) {
  if (const std::string* group = local(frame, "group")) {
    call.group = group_in(job, *group);
  }
  for (const std::string_view name : {"tensor", "input_tensor", "input", "output_tensor"}) {
    const std::string* value = local(frame, name);
    if (value != nullptr && !call.shape) {
      read_tensor(call, *value);
    }
  }
  if (const std::string* op = local(frame, "op")) {
    call.reduce_op = reduce_op_in(*op);
  }
  const bool peer = is_point_to_point(call.operation);
  for (const std::string_view name : {"src", "dst", "group_src", "group_dst", "peer"}) {
    const auto value = rank_local(frame, name);
    std::optional<model::Rank>& slot = peer ? call.peer : call.root;
    if (value && !slot) {
      slot = value;
    }
  }
}

using NativeWord = std::pair<std::string_view, std::string_view>;

// Names of functions of torch 1.13 – 2.13, gloo and NCCL in which a rank waits; longer names first.
constexpr std::array<NativeWord, 27> kNativeWords = {{
    {"c10d::broadcast_coalesced", "broadcast"},
    {"::RecvWork::wait", "recv"},
    {"::SendWork::wait", "send"},
    {"AsyncAllreduce", "all_reduce"},
    {"AsyncSparseAllreduceWork", "all_reduce"},
    {"AsyncAllgather", "all_gather"},
    {"AsyncAlltoallWork", "all_to_all"},
    {"AsyncBarrierWork", "barrier"},
    {"AsyncBroadcastWork", "broadcast"},
    {"AsyncReduceScatterWork", "reduce_scatter"},
    {"AsyncReduceWork", "reduce"},
    {"AsyncGatherWork", "gather"},
    {"AsyncScatterWork", "scatter"},
    {"::monitoredBarrier(", "monitored_barrier"},
    {"ncclAllReduce", "all_reduce"},
    {"ncclAllGather", "all_gather"},
    {"ncclReduceScatter", "reduce_scatter"},
    {"ncclBroadcast", "broadcast"},
    {"gloo::allreduce(", "all_reduce"},
    {"gloo::allgather(", "all_gather"},
    {"gloo::barrier(", "barrier"},
    {"gloo::broadcast(", "broadcast"},
    {"::allreduce(", "all_reduce"},
    {"::allreduce_", "all_reduce"},
    {"::allgather", "all_gather"},
    {"::barrier(", "barrier"},
    {"::broadcast(", "broadcast"},
}};

// The innermost function of c10d, gloo or NCCL that is an operation.
std::optional<BlockedCall> native_in(std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    const std::string_view function = frame.function;
    const bool ours = function.find("c10d::") != function.npos ||
                      function.find("gloo::") != function.npos || function.starts_with("nccl");
    const auto word = std::find_if(kNativeWords.begin(), kNativeWords.end(), [&](const auto& one) {
      return ours && function.find(one.first) != function.npos;
    });
    if (word != kNativeWords.end()) {
      BlockedCall call;
      call.operation = word->second;
      return call;
    }
  }
  return std::nullopt;
}

// Without Python frames, only gloo's message classes show what it does; a stack with Python frames
// gives better names.
std::optional<BlockedCall> message_in(std::span<const stacks::Frame> frames) {
  const auto native = native_in(frames);
  return native && is_point_to_point(native->operation) ? native : std::nullopt;
}

bool has_python(std::span<const stacks::Frame> frames) {
  return std::any_of(frames.begin(), frames.end(), [](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kPython;
  });
}

bool has_function(std::span<const stacks::Frame> frames, std::string_view part) {
  return std::any_of(frames.begin(), frames.end(), [part](const stacks::Frame& frame) {
    return frame.function.find(part) != std::string::npos;
  });
}

const model::CollectiveCall* newest_record(const BlockedCall& call, model::Rank rank,
                                           const History& history) {
  // torch's group may be known by name only, and its calls by those of NCCL below it
  if (!call.group.empty() && !history.ranks(call.group).empty()) {
    return history.last(call.group, rank);
  }
  const model::CollectiveCall* found = nullptr;
  for (const std::string& group : history.groups()) {
    const model::CollectiveCall* last = history.last(group, rank);
    if (last == nullptr || (!call.operation.empty() && last->operation != call.operation)) {
      continue;
    }
    const bool later = found == nullptr ||
                       (!model::is_over(last->state) && model::is_over(found->state)) ||
                       (last->time && found->time && *last->time > *found->time);
    found = later ? last : found;
  }
  return found;
}

}  // namespace

BlockedCall blocked_in(const model::CollectiveCall& record) {
  return {.operation = record.operation,
          .group = record.group,
          .sequence = record.point_to_point ? std::nullopt : std::optional(record.sequence),
          .root = record.root,
          .peer = record.peer,
          .tag = record.tag,
          .reduce_op = record.reduce_op,
          .shape = record.shape,
          .dtype = record.dtype};
}

bool has_unfinished_call(const History& history, model::Rank rank) {
  for (const Calls* calls : history.lanes(rank)) {
    if (!model::is_over(calls->back()->state)) {
      return true;
    }
  }
  const model::CollectiveCall* const oldest = unfinished_on_gpu(history, rank);
  return oldest != nullptr && oldest->point_to_point;
}

const model::CollectiveCall* unfinished_on_gpu(const History& history, model::Rank rank) {
  const model::CollectiveCall* oldest = nullptr;
  const auto take_oldest = [&oldest](const Calls& calls) {
    for (const model::CollectiveCall* call : calls) {
      const bool open =
          call->state == model::CallState::kEnqueued || call->state == model::CallState::kStarted;
      if (open && call->time && call->call_site.known() &&
          (oldest == nullptr || *call->time < *oldest->time)) {
        oldest = call;
      }
    }
  };
  for (const Calls* calls : history.lanes(rank)) {
    take_oldest(*calls);
  }
  take_oldest(history.point_to_point(rank));
  return oldest != nullptr && oldest->point_to_point ? &unanswered_of_batch(history, rank, *oldest)
                                                     : oldest;
}

const model::CollectiveCall* unfinished_before(const History& history, const Standing& host,
                                               const model::Thread& thread) {
  const model::CollectiveCall* const oldest = unfinished_on_gpu(history, host.rank);
  if (oldest == nullptr || oldest->point_to_point) {
    return oldest;
  }
  const stacks::Frame* const user = model::user_frame(thread);
  const bool is_another = host.call && !host.call->operation.empty() &&
                          host.call->operation != oldest->operation && user != nullptr &&
                          !same_line(oldest->call_site, model::call_site(*user));
  return is_another ? oldest : nullptr;
}

const model::CollectiveCall* polled_call(const model::Thread& thread, const History& history,
                                         model::Rank rank) {
  if (!thread.waits_on || thread.waits_on->kind != model::kPolledCall) {
    return nullptr;
  }
  const auto oldest_open = [&thread](const Calls& calls) -> const model::CollectiveCall* {
    const auto open = std::find_if(calls.begin(), calls.end(), [&thread](const auto* call) {
      return call->group == thread.waits_on->target && call->state == model::CallState::kEnqueued &&
             call->call_site.known();
    });
    return open == calls.end() ? nullptr : *open;
  };
  const auto* collective = oldest_open(history.calls(thread.waits_on->target, rank));
  return collective != nullptr ? collective : oldest_open(history.point_to_point(rank));
}

std::string world_group(const model::JobModel& job) {
  for (const model::ProcessGroup& group : job.groups) {
    if (group.name == "default_pg") {
      return group.id;
    }
  }
  if (model::group(job, "0") != nullptr) {
    return "0";
  }
  if (job.groups.empty()) {
    return "0";
  }
  return job.groups.size() == 1 ? job.groups.front().id : std::string();
}

std::optional<BlockedCall> call_in_frames(const model::JobModel& job,
                                          std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    const Operation* operation = in_c10d(frame) ? operation_of(frame.function) : nullptr;
    if (operation != nullptr) {
      BlockedCall call;
      call.operation = operation->operation;
      read_arguments(call, job, frame);
      return call;
    }
  }
  return message_in(frames);
}

std::optional<BlockedCall> call_without_python(const model::Process& process,
                                               const model::Thread& thread) {
  if (has_python(thread.frames) || has_function(thread.frames, "c10d::Reducer")) {
    return std::nullopt;
  }
  auto call = native_in(thread.frames);
  if (call || !has_function(thread.frames, "c10d::Work::wait")) {
    return call;
  }
  for (const model::Thread& worker : process.threads) {
    if (!has_function(worker.frames, "AsyncWork::execute")) {
      continue;
    }
    auto theirs = native_in(worker.frames);
    if (call && theirs && call->operation != theirs->operation) {
      return std::nullopt;  // several calls are in progress: unknown which one the thread waits for
    }
    (theirs ? theirs : call).swap(call);
  }
  return call;
}

void complete_from_history(BlockedCall& call, const Standing& where, const model::JobModel& job,
                           const History& history) {
  const Activity activity = where.activity;
  const model::Rank rank = where.rank;
  if (activity == Activity::kPointToPoint) {
    const Calls& all = history.point_to_point(rank);
    if (!all.empty()) {
      call.operation = call.operation.empty() || call.operation == "batch_isend_irecv"
                           ? all.back()->operation
                           : call.operation;
      call.peer = call.peer ? call.peer : all.back()->peer;
      call.group = call.group.empty() ? all.back()->group : call.group;
    }
    return;
  }
  const bool of_ddp = activity == Activity::kDdpBackward || activity == Activity::kDdpForward ||
                      activity == Activity::kDdpConstructor;
  if (call.group.empty() && (of_ddp || job.groups.size() == 1)) {
    call.group = world_group(job);
  }
  const bool told_by_frames = activity == Activity::kCollective && !call.operation.empty();
  const model::CollectiveCall* record = newest_record(call, rank, history);
  if (record != nullptr && told_by_frames && where.thread != nullptr &&
      !may_have_called(*where.thread, *record)) {
    record = open_call_of(*where.thread, history.calls(record->group, rank));
  }
  // A log may tell only that the newest call is over: the frames show another one.
  const bool other = record != nullptr && told_by_frames && record->operation.empty() &&
                     record->state == model::CallState::kCompleted;
  if (record == nullptr || other) {
    call.group = call.group.empty() ? world_group(job) : call.group;
    return;
  }
  // torch's Python code and its recorder spell sub-operations differently; the peers see the
  // record's spelling.
  call.operation = record->operation.empty() ? call.operation : record->operation;
  call.group = record->group;
  call.sequence = record->sequence;
  call.root = call.root ? call.root : record->root;
  call.shape = record->shape ? record->shape : call.shape;
  call.dtype = record->dtype.empty() ? call.dtype : record->dtype;
  call.reduce_op = record->reduce_op.empty() ? call.reduce_op : record->reduce_op;
}

}  // namespace ddpdoctor::graph
