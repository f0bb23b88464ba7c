// SPDX-License-Identifier: Apache-2.0
// In the forms of NCCL 2.4 – 2.32 with NCCL_DEBUG=INFO. Before 2.18 no line tells the start of a
// setup: "Trees [0] 1/-1/-1->0->-1" then names the rank (here 0).
#include "collector/imports/logs/nccl_setup.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/nccl_ranks.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostSetups = 4096;  // GPUs of one log
constexpr std::size_t kLongestSetupLine = 240;
constexpr std::size_t kLongestTransport = 64;

struct StepWord {
  std::string_view text;
  std::string_view step;
  bool leads = true;  // at the start of the message
};

/// The first match counts. Other lines are of plugins, proxies and the environment.
constexpr std::array<StepWord, 30> kStepWords = {{
    {"Init COMPLETE", "finished", false},
    {"Init START", "start", false},
    {": opCount ", "finished", false},  // a collective
    {"Launch mode", "finished"},
    {"Destroy COMPLETE", "closed", false},
    {"Abort COMPLETE", "closed", false},
    {"Bootstrap timings", "topology"},
    {"bootstrapSplit: ", "topology"},
    {"Using network ", "network"},
    {"Setting affinity for ", "topology"},
    {"NVLS multicast support ", "topology"},
    {"MNNVL ", "topology"},
    {" localRanks ", "topology", false},
    {" via ", "connect", false},
    {"Trees [", "channels"},
    {"Ring 0", "channels"},
    {"Channel ", "channels"},
    {"P2P Chunksize ", "channels"},
    {"Check P2P Type ", "channels"},
    {"Connected all rings", "rings"},
    {"Connected all trees", "trees"},
    {"Connected binomial trees", "trees"},
    {"Connected NVLS tree", "tuning"},
    {"NVLS Un", ""},
    {"NVLS tuning", ""},
    {"NVLS ", "nvls"},
    {"Connected CollNet", "tuning", false},
    {"Connected collnet", "tuning"},
    {"threadThresholds ", "tuning"},
    {" coll channels, ", "tuning", false},
}};

std::string_view step_of(std::string_view info) {
  const auto* const found =
      std::find_if(kStepWords.begin(), kStepWords.end(), [info](const StepWord& word) {
        return word.leads ? info.starts_with(word.text) : info.find(word.text) != info.npos;
      });
  const bool connects = found != kStepWords.end() && found->step == "connect";
  return found == kStepWords.end() || (connects && !info.starts_with("Channel "))
             ? std::string_view()
             : found->step;
}

/// "init.cc:907 -> 1": a function of the setup returned an error.
bool returns_error_of_setup(std::string_view info) {
  const std::size_t at = info.find(" -> ");
  return at != info.npos && at < 80 && info.find(' ') == at &&
         info.substr(0, at).find(".cc:") != info.npos &&
         number_behind(info, " -> ", 99).value_or(0) > 0;
}

/// The setups of one GPU of one process, in order.
struct Setup {
  std::string host;
  pid_t pid = 0;
  std::optional<std::int64_t> gpu;
  std::optional<std::int64_t> rank;  // in the communicator
  std::int64_t size = 0;
  std::set<std::string> open;  // communicators with a start and no end
  std::set<std::string> via;
  std::string step;
  std::string text;
  std::optional<model::Rank> told_rank;  // by the prefix of the line
  bool begun = false;                    // by a line of a setup without a start
  bool lazy = false;  // finished; connects its ring for the first collective (NCCL 2.22 and later)
  bool failed = false;
  bool closed = false;  // its last communicator was destroyed

  void begin(std::string_view info) {
    step.clear();
    via.clear();
    failed = false;
    open.insert(comm_of(info));
    rank = number_behind(info, " rank ", kMaxRank);
    size = comm_size_in(info).value_or(0);
  }
  void end(std::string_view info) {
    if (size == 0) {  // its start was not printed
      rank = number_behind(info, " rank ", kMaxRank);
      size = comm_size_in(info).value_or(0);
    }
    const auto found = open.find(comm_of(info));
    if (found != open.end()) {
      open.erase(found);
    } else {
      open.clear();
    }
    begun = false;
    lazy = false;
    failed = false;
    step = "finished";
  }
  static std::string comm_of(std::string_view info) {
    return std::string(between(info, "comm ", " ").value_or(""));
  }
  [[nodiscard]] bool finished() const {
    return open.empty() && !begun;
  }
};

/// "Trees [0] 1/-1/-1->0->-1": the rank between the arrows; "Channel 00/02 :    0   1   2   3": the
/// ranks of a ring.
void read_numbers(std::string_view info, Setup& setup) {
  if (info.starts_with("Trees [") && !setup.rank) {
    setup.rank = number_behind(info, "->", kMaxRank);
  }
  const std::size_t colon = info.find(" : ");
  if (info.starts_with("Channel ") && colon != info.npos && info.find("->") == info.npos &&
      setup.size == 0) {
    const auto words = words_of(info.substr(colon + 3));
    setup.size = static_cast<std::int64_t>(words.size());
  }
}

/// "Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read" → "P2P/CUMEM".
std::string transport_of(std::string_view info) {
  std::string_view rest = info.substr(std::min(info.find(" via ") + 5, info.size()));
  rest = rest.substr(0, std::min(rest.find_first_of(" ("), kLongestTransport));
  const std::size_t first = rest.find('/');
  const std::size_t second = first == rest.npos ? first : rest.find('/', first + 1);
  return base::printable(rest.substr(0, second));
}

/// "Channel 00/0 : …": of a collective. "Channel 00/1 : …" is of send and recv, which tell no end.
bool connects_ring(std::string_view info) {
  return info.substr(0, info.find(' ', 8)).ends_with("/0");
}

void read_step(std::string_view info, Setup& setup) {
  const std::string_view step = step_of(info);
  setup.closed = step.empty() ? setup.closed : step == "closed";
  if (step == "start") {
    setup.begin(info);
  } else if (step == "finished" || step == "closed") {
    setup.end(info);
    return;
  } else if (step.empty()) {
    setup.failed = setup.failed || returns_error_of_setup(info);
    return;
  }
  if (setup.lazy && step != "connect") {
    setup.end(info);
    return;
  }
  const bool early = step == "network" || step == "topology";
  setup.lazy = setup.lazy || (setup.open.empty() && setup.step == "finished" && step == "connect" &&
                              connects_ring(info));
  setup.begun =
      setup.begun || setup.lazy || (setup.open.empty() && !early && setup.step != "finished");
  if (setup.finished()) {
    return;
  }
  if (setup.step == "finished") {  // lines of a later communicator
    setup.via.clear();
  }
  read_numbers(info, setup);
  if (step == "connect") {
    setup.via.insert(transport_of(info));
  }
  setup.step = std::string(step);
  setup.text = base::elide(base::printable(base::trim(info)), kLongestSetupLine);
}

model::Fact fact_of_setup(const Setup& setup) {
  model::Fact fact{.rank = {}, .pid = setup.pid, .kind = "nccl-setup", .fields = {}};
  if (setup.rank) {
    fact.fields["group_rank"] = *setup.rank;
  }
  fact.rank = setup.told_rank;
  fact.fields["host"] = base::printable(setup.host);
  fact.fields["step"] = setup.step;
  fact.fields["text"] = setup.text;
  fact.fields["size"] = setup.size;
  fact.fields["finished"] = setup.finished();
  fact.fields["failed"] = setup.failed;
  fact.fields["lazy"] = setup.lazy;
  fact.fields["closed"] = setup.closed && setup.finished();
  std::vector<std::string> via(setup.via.begin(), setup.via.end());
  fact.fields["via"] = std::move(via);
  if (setup.gpu) {
    fact.fields["gpu"] = *setup.gpu;
  }
  return fact;
}

}  // namespace

void read_nccl_setup(std::string_view log, model::JobModel& job) {
  if (log.find(" INFO ") == log.npos) {
    return;
  }
  using Gpu = std::pair<HostPid, std::int64_t>;
  std::map<Gpu, Setup> setups;
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, kLongestLogLine));
    const std::string_view info = nccl_info(line.text);
    const auto tag = info.empty() ? std::nullopt : nccl_tag(line.text);
    const Gpu gpu{{std::string(tag ? tag->host : std::string_view()), tag ? tag->pid : 0},
                  tag ? tag->gpu.value_or(-1) : -1};
    if (!tag || (!setups.contains(gpu) && setups.size() == kMostSetups)) {
      continue;
    }
    Setup& setup = setups[gpu];
    setup.host = tag->host;
    setup.pid = tag->pid;
    setup.gpu = tag->gpu;
    setup.told_rank = line.rank ? line.rank : setup.told_rank;
    read_step(info, setup);
  }
  for (const auto& [gpu, setup] : setups) {
    if (!setup.step.empty()) {
      job.facts.push_back(fact_of_setup(setup));
    }
  }
}

}  // namespace ddpdoctor::imports
