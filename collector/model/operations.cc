// SPDX-License-Identifier: Apache-2.0
#include "collector/model/operations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/lower.h"

namespace ddpdoctor::model {
namespace {

using std::string_view;
using Spelling = std::pair<string_view, string_view>;

/// Recorded names (torch 1.13 – 2.13, ProcessGroupGloo and ProcessGroupNCCL) that differ from
/// PyTorch's public names. Compared ignoring case, so that NCCL's "AllReduce" and c10d's
/// "allreduce" are both found.
constexpr std::array<Spelling, 34> kSpellings = {{
    {"allreduce", "all_reduce"},
    {"allreduce_coalesced", "all_reduce_coalesced"},
    {"all_reduce_sparse", "all_reduce"},
    {"sparse_all_reduce", "all_reduce"},
    {"all_reduce_barrier", "barrier"},
    {"allgather", "all_gather"},
    {"_allgather_base", "all_gather_into_tensor"},
    {"_all_gather_base", "all_gather_into_tensor"},
    {"allgather_into_tensor", "all_gather_into_tensor"},
    {"allgather_into_tensor_coalesced", "all_gather_into_tensor_coalesced"},
    {"_all_gather_base_coalesced", "all_gather_into_tensor_coalesced"},
    {"allgather_coalesced", "all_gather_coalesced"},
    {"_reduce_scatter_base", "reduce_scatter_tensor"},
    {"reducescatter", "reduce_scatter"},
    {"_reduce_scatter_tensor", "reduce_scatter_tensor"},
    {"_broadcast_oop", "broadcast"},
    {"_reduce_oop", "reduce"},
    {"bcast", "broadcast"},
    {"alltoall", "all_to_all"},
    {"alltoall_base", "all_to_all_single"},
    {"all_to_all_base", "all_to_all_single"},
    {"alltoallv", "all_to_all"},
    {"all_to_allv", "all_to_all"},
    {"recvanysource", "recv"},
    {"recv_any_source", "recv"},
    {"recv_anysource", "recv"},
    {"monitoredbarrier", "monitored_barrier"},
    {"isend", "send"},
    {"irecv", "recv"},
    {"_allreduce_oop", "all_reduce"},
    {"all_reduce_", "all_reduce"},
    {"broadcast_", "broadcast"},
    {"reduce_scatter_base", "reduce_scatter_tensor"},
    {"all_gather_base", "all_gather_into_tensor"},
}};

/// Names of c10::ScalarType and torch's names for them.
constexpr std::array<Spelling, 16> kDtypes = {{
    {"float", "float32"},
    {"double", "float64"},
    {"half", "float16"},
    {"bfloat16", "bfloat16"},
    {"long", "int64"},
    {"int", "int32"},
    {"short", "int16"},
    {"char", "int8"},
    {"byte", "uint8"},
    {"bool", "bool"},
    {"complexhalf", "complex32"},
    {"complexfloat", "complex64"},
    {"complexdouble", "complex128"},
    {"qint8", "qint8"},
    {"quint8", "quint8"},
    {"qint32", "qint32"},
}};

template <std::size_t N>
std::optional<string_view> spelled(string_view word, const std::array<Spelling, N>& table) {
  const std::string wanted = base::lower(word);
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&wanted](const Spelling& s) { return s.first == wanted; });
  if (found == table.end()) {
    return std::nullopt;
  }
  return found->second;
}

std::optional<Rank> number(string_view text) {
  Rank value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 ||
      value >= kMaxWorldSize) {
    return std::nullopt;
  }
  return value;
}

/// "AllGather" → "all_gather"; names with an underscore or without inner capitals are unchanged.
std::string snake_case(string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool starts_word =
        std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (starts_word) {
      out += '_';
    }
    out += static_cast<char>(std::isupper(c) != 0 ? std::tolower(c) : c);
  }
  return out;
}

/// Reads the "0->1" or "1<-0" after send and recv.
void read_partners(string_view text, Operation& out) {
  std::size_t arrow = text.find("->");
  if (arrow == string_view::npos) {
    arrow = text.find("<-");
  }
  if (arrow != string_view::npos) {
    out.own = number(text.substr(0, arrow));
    out.peer = number(text.substr(arrow + 2));
  }
}

}  // namespace

std::string_view backend_of(std::string_view recorded) {
  const std::size_t colon = recorded.find(':');
  return colon == string_view::npos || recorded.substr(0, colon).find(' ') != string_view::npos
             ? string_view()
             : recorded.substr(0, colon);
}

Operation operation_of(std::string_view recorded) {
  const string_view backend = backend_of(recorded);
  string_view name = backend.empty() ? recorded : recorded.substr(backend.size() + 1);
  Operation out;
  if (const std::size_t space = name.find(' '); space != string_view::npos) {
    read_partners(name.substr(space + 1), out);
    name = name.substr(0, space);
  }
  if (name.starts_with("nccl") && name.size() > 4 &&
      std::isupper(static_cast<unsigned char>(name[4])) != 0) {  // ncclAllReduce
    name.remove_prefix(4);
  }
  const auto known = spelled(name, kSpellings);
  out.name = known ? std::string(*known) : snake_case(name);
  out.point_to_point = out.name == "send" || out.name == "recv";
  return out;
}

std::string dtype_of(std::string_view recorded) {
  const string_view name = recorded.starts_with("torch.") ? recorded.substr(6) : recorded;

  const auto known = spelled(name, kDtypes);
  return known ? std::string(*known) : base::lower(name);
}

}  // namespace ddpdoctor::model
