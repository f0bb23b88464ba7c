// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/communicator_setup.h"

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// A native function that waits for all ranks of a communicator. NCCL 2.18 – 2.32, torch 2.1
/// – 2.14.
struct SetupRow {
  std::string_view function;  // part of its name
  SetupKind kind = SetupKind::kInit;
};

constexpr auto kSetup = std::to_array<SetupRow>({
    {"ncclCommSplit", SetupKind::kSplit},
    {"NCCLComm::split", SetupKind::kSplit},
    {"bootstrapSplit", SetupKind::kSplit},
    {"commGetSplitInfo", SetupKind::kSplit},
    {"ncclCommShrink", SetupKind::kSplit},
    {"ncclCommGrow", SetupKind::kSplit},
    {"ncclCommWindowRegister", SetupKind::kWindow},
    {"ncclDevCommCreate", SetupKind::kWindow},
    {"NCCLSymmetricMemoryAllocator::rendezvous", SetupKind::kWindow},
    {"ncclCommInitRank", SetupKind::kInit},
    {"NCCLComm::create", SetupKind::kInit},
    {"broadcastUniqueNCCLID", SetupKind::kInit},
    {"allgatherUniqueNCCLIDs", SetupKind::kInit},
    {"bootstrapInit", SetupKind::kInit},
    {"ProcessGroupNCCL::initNCCLComm", SetupKind::kInit},
});

/// A function of NCCL, or the one of a binding through ctypes, which has its name.
bool calls(const model::Frame& frame, std::string_view function) {
  return frame.language == model::Language::kNative
             ? frame.function.find(function) != std::string::npos
             : function.starts_with("nccl") && frame.function.starts_with(function);
}

std::optional<Setup> setup_of(const model::JobModel& job, const graph::Standing& standing) {
  if (standing.thread == nullptr || standing.thread->frames.empty()) {
    return std::nullopt;
  }
  for (const SetupRow& row : kSetup) {
    for (const model::Frame& frame : standing.thread->frames) {
      if (calls(frame, row.function)) {
        auto call = graph::call_in_frames(job, standing.thread->frames);
        return Setup{.standing = &standing,
                     .kind = row.kind,
                     .function = std::string(row.function),
                     .call = call && !call->group.empty() ? std::move(call) : standing.call,
                     .bound = frame.language == model::Language::kPython};
      }
    }
  }
  return std::nullopt;
}

struct Setups {
  std::vector<Setup> all;
};

Setups read_setups(const graph::Examination& examination) {
  Setups out;
  for (const graph::Standing& standing : examination.standings) {
    if (auto one = setup_of(examination.job, standing)) {
      out.all.push_back(std::move(*one));
    }
  }
  return out;
}

struct CompleteSetups {
  model::RankSet ranks;
};

CompleteSetups find_complete(const graph::Examination& examination) {
  constexpr double kLongSetup = 60;  // seconds
  CompleteSetups out;
  if (examination.job.seconds_without_progress.value_or(0) >= kLongSetup) {
    return out;
  }
  std::map<std::string, std::pair<const Setup*, model::RankSet>> by_key;
  for (const Setup& one : setups(examination)) {
    auto& [any, ranks] = by_key[key_of(one)];
    ranks.insert(one.standing->rank);
    any = &one;
  }
  for (const auto& [key, party] : by_key) {
    const auto& [any, ranks] = party;
    if (any->kind == SetupKind::kInit && any->call &&
        expected(examination, *any).minus(ranks).empty()) {
      out.ranks = out.ranks.united(ranks);
    }
  }
  return out;
}

}  // namespace

const std::vector<Setup>& setups(const graph::Examination& examination) {
  return examination.memo.once<Setups>([&examination] { return read_setups(examination); }).all;
}

std::string key_of(const Setup& one) {
  const auto& call = one.call;
  return fmt::format("{} {}", static_cast<int>(one.kind), call ? call->group : std::string());
}

model::RankSet expected(const graph::Examination& examination, const Setup& one) {
  const auto& call = one.call;
  if (call && graph::is_point_to_point(call->operation) && call->peer) {
    return {*call->peer};
  }
  const model::ProcessGroup* const group =
      one.kind == SetupKind::kInit && call ? model::group(examination.job, call->group) : nullptr;
  return group == nullptr || group->ranks.empty() ? model::all_ranks(examination.job)
                                                  : model::RankSet(group->ranks);
}

const model::RankSet& complete_setups(const graph::Examination& examination) {
  return examination.memo
      .once<CompleteSetups>([&examination] { return find_complete(examination); })
      .ranks;
}

}  // namespace ddpdoctor::detectors
