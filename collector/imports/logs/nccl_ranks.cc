// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/nccl_ranks.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostProcesses = 70'000;

/// A rank in a communicator of this size.
struct InComm {
  std::int64_t size = 0;
  model::Rank rank = 0;
};

using InComms = std::map<HostPid, std::map<std::int64_t, InComm>>;  // by GPU

/// "node7:984:1357 [4] NCCL INFO … comm 0x55… rank 3 nranks 16 cudaDev 4".
void read_comm(std::string_view line, InComms& known) {
  const std::size_t at = line.find(" comm 0x");
  const auto tag = at == line.npos ? std::nullopt : nccl_tag(line);
  const auto rank = tag ? number_behind(line.substr(at), " rank ", kMaxRank) : std::nullopt;
  const auto size = rank ? comm_size_in(line.substr(at)) : std::nullopt;
  if (!size || *rank >= *size || known.size() >= kMostProcesses) {
    return;
  }
  InComm& own = known[{std::string(tag->host), tag->pid}][tag->gpu.value_or(-1)];
  if (*size > own.size) {
    own = {.size = *size, .rank = static_cast<model::Rank>(*rank)};
  }
}

/// "node7:984:1357 [4] proxy.cc:1519 NCCL WARN [Proxy Service 3] Failed to execute operation …":
/// the rank in the communicator that started this proxy.
void read_proxy(std::string_view line, InComms& known) {
  const auto tag = nccl_tag(line);
  const auto rank = tag ? number_behind(line, "[Proxy Service ", kMaxRank) : std::nullopt;
  if (!rank || known.size() >= kMostProcesses) {
    return;
  }
  InComm& own = known[{std::string(tag->host), tag->pid}]
                    .try_emplace(tag->gpu.value_or(-1),
                                 InComm{.size = 0, .rank = static_cast<model::Rank>(*rank)})
                    .first->second;
  own.rank = own.rank == *rank ? own.rank : -1;  // several communicators
}

/// "#  Rank  2 Group  0 Pid  12098 on     node23 device  2 [0x3a] NVIDIA H100" of nccl-tests.
void read_device(std::string_view line, InComms& known) {
  const auto words = words_of(line.substr(0, 200));
  const auto behind = [&words](std::string_view word) {
    const auto at = std::find(words.begin(), words.end(), word);
    return at == words.end() || at + 1 == words.end() ? std::string_view() : *(at + 1);
  };
  const auto rank = number_of(behind("Rank"), kMaxRank);
  const auto pid = pid_of(behind("Pid"));
  const auto gpu = number_of(behind("device"), 1023);
  const std::string_view host = behind("on");
  if (!rank || !pid || !gpu || host.empty() || known.size() >= kMostProcesses) {
    return;
  }
  known[{std::string(host), *pid}][*gpu] = {.size = 0, .rank = static_cast<model::Rank>(*rank)};
}

}  // namespace

std::optional<std::int64_t> comm_size_in(std::string_view info) {
  const auto size = number_behind(info, " nranks ", kMaxRank + 1);
  return size ? size : number_behind(info, " nRanks ", kMaxRank + 1);
}

NcclRanks::NcclRanks(std::string_view log) {
  InComms comms;
  InComms devices;
  InComms proxies;
  for (std::string_view line : base::split(log, '\n')) {
    line = line.substr(0, kLongestLogLine);
    read_comm(line, comms);
    read_proxy(line, proxies);
    if (const std::size_t at = line.find("# "); at < 32 && base::contains(line, " Pid ")) {
      read_device(line.substr(at), devices);
    }
  }
  if (comms.empty()) {
    comms = std::move(proxies);
  }
  std::int64_t world = 0;
  for (const auto& [process, gpus] : comms) {
    for (const auto& [gpu, own] : gpus) {
      world = std::max(world, own.size);
    }
  }
  for (const auto* const table : {&devices, &comms}) {
    for (const auto& [process, gpus] : *table) {
      for (const auto& [gpu, own] : gpus) {
        if (own.rank >= 0 && (own.size == world || table == &devices)) {
          known_[process][gpu] = own.rank;
        }
      }
    }
  }
}

std::optional<model::Rank> NcclRanks::of(const NcclTag& tag) const {
  const auto process = known_.find({std::string(tag.host), tag.pid});
  if (process == known_.end() || process->second.empty()) {
    return std::nullopt;
  }
  const auto& gpus = process->second;
  const auto own = gpus.find(tag.gpu.value_or(-1));
  if (own != gpus.end()) {
    return own->second;
  }
  const bool one = std::all_of(gpus.begin(), gpus.end(), [&gpus](const auto& gpu) {
    return gpu.second == gpus.begin()->second;
  });
  return one ? std::optional(gpus.begin()->second) : std::nullopt;
}

}  // namespace ddpdoctor::imports
