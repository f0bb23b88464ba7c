// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/mpi_calls.h"

#include <algorithm>

#include "collector/graph/blocked_call.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

using enum Activity;

constexpr MpiFunction kFunctions[] = {
    {"Barrier", "barrier", kCollective},
    {"Bcast", "broadcast", kCollective},
    {"Reduce", "reduce", kCollective},
    {"Allreduce", "all_reduce", kCollective},
    {"Reduce_scatter", "reduce_scatter", kCollective},
    {"Reduce_scatter_block", "reduce_scatter_tensor", kCollective},
    {"Scan", "scan", kCollective},
    {"Exscan", "exscan", kCollective},
    {"Gather", "gather", kCollective},
    {"Gatherv", "gatherv", kCollective},
    {"Scatter", "scatter", kCollective},
    {"Scatterv", "scatterv", kCollective},
    {"Allgather", "all_gather", kCollective},
    {"Allgatherv", "all_gatherv", kCollective},
    {"Alltoall", "all_to_all", kCollective},
    {"Alltoallv", "all_to_allv", kCollective},
    {"Alltoallw", "all_to_allw", kCollective},
    {"Comm_dup", "comm_dup", kCollective},
    {"Comm_dup_with_info", "comm_dup", kCollective},
    {"Comm_split", "comm_split", kCollective},
    {"Comm_split_type", "comm_split", kCollective},
    {"Comm_create", "comm_create", kCollective},
    {"Comm_create_group", "comm_create_group", kNewGroup},
    {"Cart_create", "comm_create", kCollective},
    {"Cart_sub", "comm_split", kCollective},
    {"Comm_free", "comm_free", kCollective},
    {"Comm_disconnect", "comm_disconnect", kCollective},
    {"Win_fence", "win_fence", kCollective},
    {"Win_create", "win_create", kCollective},
    {"Win_free", "win_free", kCollective},
    {"File_open", "file_open", kCollective},
    {"File_close", "file_close", kCollective},
    {"File_write_all", "file_write_all", kCollective},
    {"File_read_all", "file_read_all", kCollective},
    {"Send", "send", kPointToPoint},
    {"Bsend", "send", kPointToPoint},
    {"Ssend", "send", kPointToPoint},
    {"Rsend", "send", kPointToPoint},
    {"Recv", "recv", kPointToPoint},
    {"Mrecv", "recv", kPointToPoint},
    {"Sendrecv", "sendrecv", kPointToPoint},
    {"Sendrecv_replace", "sendrecv", kPointToPoint},
    {"Probe", "probe", kPointToPoint},
    {"Mprobe", "probe", kPointToPoint},
    {"Wait", "", kPointToPoint},
    {"Waitall", "", kPointToPoint},
    {"Waitany", "", kPointToPoint},
    {"Waitsome", "", kPointToPoint},
    {"Init", "init", kRendezvous},
    {"Init_thread", "init", kRendezvous},
    {"Finalize", "finalize", kExit},
    // functions whose public wrapper has no frame
    {"ompi_mpi_init", "init", kRendezvous},
    {"ompi_mpi_finalize", "finalize", kExit},
};

/// A wait whose request was not recorded.
constexpr std::string_view kUnknownWait = "wait";

/// Of the messages that a wait covers, prefers a receive to a send, because small sends complete by
/// themselves. A message without a counterpart has priority over all.
const model::CollectiveCall* waited_message(model::Rank rank, const History& history) {
  const model::CollectiveCall* found = nullptr;
  int best = 0;
  for (const model::CollectiveCall* call : history.point_to_point(rank)) {
    if (call->state != model::CallState::kStarted) {
      continue;
    }
    const bool lonely = is_matched(history, rank, blocked_in(*call)) == false;
    const int weight = (lonely ? 2 : 0) + (call->operation == "recv" ? 1 : 0) + 1;
    if (weight > best) {
      best = weight;
      found = call;
    }
  }
  return found;
}

const model::CollectiveCall* waited_collective(model::Rank rank, const History& history) {
  for (const std::string& group : history.groups()) {
    for (const model::CollectiveCall* call : history.calls(group, rank)) {
      if (call->state == model::CallState::kStarted) {
        return call;
      }
    }
  }
  return nullptr;
}

bool same_tag(const std::optional<int>& a, const std::optional<int>& b) {
  return !a || !b || *a == *b;
}

/// Messages between two ranks in one communicator, by sender (or receiver).
struct Messages {
  int posted = 0;
  int open = 0;  // number of them that are open
};

Messages count_messages(const History& history, model::Rank rank, model::Rank peer, bool sends,
                        const BlockedCall& like) {
  Messages count;
  for (const model::CollectiveCall* call : history.point_to_point(rank)) {
    const bool is_send = call->operation == "send";
    const bool other = call->operation == "sendrecv" || call->operation == "probe";
    if (!other && is_send == sends && call->group == like.group && call->peer == peer &&
        same_tag(call->tag, like.tag)) {
      ++count.posted;
      count.open += model::is_over(call->state) ? 0 : 1;
    }
  }
  return count;
}

const MpiFunction* function_named(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [name](const MpiFunction& one) { return one.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

/// "__pyx_pw_6mpi4py_3MPI_4Comm_293allreduce" is Comm.allreduce.
const MpiFunction* function_of_mpi4py(std::string_view symbol) {
  constexpr std::string_view kMethods = "__pyx_pw_6mpi4py_3MPI_";
  const std::size_t digit = symbol.find_last_of("0123456789");
  if (!symbol.starts_with(kMethods) || digit == std::string_view::npos ||
      digit + 1 >= symbol.size()) {
    return nullptr;
  }
  std::string method(symbol.substr(digit + 1));
  if (method.front() >= 'a' && method.front() <= 'z') {
    method.front() = static_cast<char>(method.front() - 'a' + 'A');
  }
  return function_named(method);
}

}  // namespace

BlockedCall call_of_mpi(const MpiFunction& function, model::Rank rank, const History& history,
                        Activity& activity) {
  if (function.operation.empty()) {
    if (const model::CollectiveCall* message = waited_message(rank, history); message != nullptr) {
      return blocked_in(*message);
    }
    if (const model::CollectiveCall* call = waited_collective(rank, history); call != nullptr) {
      activity = Activity::kCollective;
      return blocked_in(*call);
    }
    BlockedCall unknown;
    unknown.operation = kUnknownWait;
    return unknown;
  }
  if (function.activity == Activity::kPointToPoint) {
    const Calls& all = history.point_to_point(rank);
    const auto newest = std::find_if(all.rbegin(), all.rend(), [&](const auto* call) {
      return !model::is_over(call->state) && call->operation == function.operation;
    });
    if (newest != all.rend()) {
      return blocked_in(**newest);
    }
  }
  BlockedCall call;
  call.operation = function.operation;
  return call;
}

bool take_method_of_mpi4py(std::span<const model::Frame> frames, Activity& activity,
                           BlockedCall& call) {
  const MpiFunction* const method = mpi_function(frames, false);
  if (activity != Activity::kPointToPoint || method == nullptr ||
      method->activity != Activity::kCollective) {
    return false;
  }
  activity = Activity::kCollective;
  BlockedCall whole;
  whole.operation = method->operation;
  whole.group = call.group;
  call = whole;
  return true;
}

void take_common_wait_for_a_collective(std::vector<Standing>& ranks) {
  const auto in_unknown_wait = [](const Standing& one) {
    return one.activity == Activity::kPointToPoint && one.call && !one.call->peer &&
           one.call->operation == kUnknownWait && one.user.known();
  };
  const auto first = std::find_if(ranks.begin(), ranks.end(), in_unknown_wait);
  if (first == ranks.end()) {
    return;
  }
  std::size_t waiting = 0;
  for (const Standing& one : ranks) {
    const bool with_them = in_unknown_wait(one) && one.user.file == first->user.file &&
                           one.user.line == first->user.line;
    if (!with_them && one.activity != Activity::kCollective) {
      return;
    }
    waiting += with_them ? 1 : 0;
  }
  if (waiting < ranks.size() && waiting * 2 > ranks.size()) {
    for (Standing& one : ranks) {
      one.activity = Activity::kCollective;
    }
  }
}

std::optional<bool> is_matched(const History& history, model::Rank rank, const BlockedCall& call) {
  const bool sends = call.operation == "send";
  if (!call.peer || call.group.empty() || (!sends && call.operation != "recv") ||
      history.point_to_point(rank).empty()) {
    return std::nullopt;
  }
  for (const model::Rank side : {rank, *call.peer}) {
    for (const model::CollectiveCall* one : history.point_to_point(side)) {
      const bool anyone = one->operation == "recv" && !one->peer;
      if (anyone || one->operation == "sendrecv") {
        return std::nullopt;  // it may have taken, or sent, any of them
      }
    }
  }
  // NCCL's recorder records a message after its communicator is made: a rank still making it is one
  // ahead.
  const Messages own = count_messages(history, rank, *call.peer, sends, call);
  const int wanted = own.posted + (own.open == 0 ? 1 : 0);
  return count_messages(history, *call.peer, rank, !sends, call).posted >= wanted;
}

const MpiFunction* mpi_function(std::span<const model::Frame> frames, bool recorded) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    std::string_view name = frame->function;
    if (frame->language != model::Language::kNative) {
      continue;
    }
    if (const MpiFunction* const of_mpi4py = recorded ? nullptr : function_of_mpi4py(name);
        of_mpi4py != nullptr) {
      return of_mpi4py;
    }
    const bool inner = name == "ompi_mpi_init" || name == "ompi_mpi_finalize";
    if (!inner && !model::is_mpi_function(name)) {
      continue;
    }
    name.remove_prefix(inner ? 0 : name.find('_') + 1);
    if (name.ends_with("_c")) {  // variants with large counts
      name.remove_suffix(2);
    }
    return function_named(name);
  }
  return nullptr;
}

}  // namespace ddpdoctor::graph
