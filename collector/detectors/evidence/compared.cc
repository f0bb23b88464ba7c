// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/compared.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::detectors {
namespace {

bool names(std::string_view operation, std::string_view part) {
  return operation.find(part) != std::string_view::npos;
}

bool has_root(std::string_view operation) {
  constexpr std::array<std::string_view, 4> kRooted = {"broadcast", "reduce", "gather", "scatter"};
  return std::find(kRooted.begin(), kRooted.end(), operation) != kRooted.end();
}

bool matters(Compared part, std::string_view operation) {
  switch (part) {
    case Compared::kSize:
      return operation != "barrier" && !names(operation, "all_to_all");
    case Compared::kDtype:
      return operation != "barrier";
    case Compared::kSplits:
      return names(operation, "all_to_all");
    case Compared::kReduceOp:
      return names(operation, "reduce");
    case Compared::kRoot:
      return has_root(operation);
    case Compared::kMembers:
      return true;
  }
  return true;
}

bool is_known(Compared part, const model::CollectiveCall& call) {
  switch (part) {
    case Compared::kSize:
      return call.shape || call.count;
    case Compared::kDtype:
      return !call.dtype.empty();
    case Compared::kSplits:
      return call.splits && call.output_splits;
    case Compared::kReduceOp:
      return !call.reduce_op.empty();
    case Compared::kRoot:
      return call.root.has_value();
    case Compared::kMembers:
      return true;
  }
  return true;
}

}  // namespace

std::string_view name_of(Compared part) {
  switch (part) {
    case Compared::kSize:
      return "sizes";
    case Compared::kDtype:
      return "data types";
    case Compared::kSplits:
      return "split sizes";
    case Compared::kReduceOp:
      return "reduce operations";
    case Compared::kRoot:
      return "roots";
    case Compared::kMembers:
      return "members of the group";
  }
  return {};
}

std::vector<Compared> not_compared(const graph::Examination& examination,
                                   const graph::GroupView& view, std::int64_t sequence) {
  constexpr std::array<Compared, 6> kAll = {Compared::kSize,   Compared::kDtype,
                                            Compared::kSplits, Compared::kReduceOp,
                                            Compared::kRoot,   Compared::kMembers};
  std::vector<Compared> out;
  for (const Compared part : kAll) {
    bool known = part != Compared::kMembers || !view.group.ranks.empty();
    for (const graph::RankProgress& progress : view.progress) {
      const model::CollectiveCall* call =
          examination.history.at(view.group.id, progress.rank, sequence);
      known =
          known && call != nullptr && (!matters(part, call->operation) || is_known(part, *call));
    }
    if (!known) {
      out.push_back(part);
    }
  }
  return out;
}

std::string listed(const std::vector<Compared>& parts) {
  std::string out;
  for (const Compared part : parts) {
    out += (out.empty() ? "" : ", ") + std::string(name_of(part));
  }
  return out;
}

}  // namespace ddpdoctor::detectors
