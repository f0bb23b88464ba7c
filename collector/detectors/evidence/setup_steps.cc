// SPDX-License-Identifier: Apache-2.0
// The order of steps differs between releases of NCCL from "connect" on, so only the steps before
// that, and the end of the setup before a lazy connection, tell who is behind.
#include "collector/detectors/evidence/setup_steps.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::array<SetupStep, 8> kSteps = {{
    {"network", "the ranks have not found each other yet"},
    {"start", "the ranks have not found each other yet (bootstrap)"},
    {"topology", "the ranks exchange their topology"},
    {"channels", "the ranks set up their channels"},
    {"connect", "the ranks connect their channels"},
    {"rings", "the ranks connect their trees, after the rings"},
    {"trees", "the ranks allocate buffers, after rings and trees"},
    {"nvls", "the ranks set up NVLink SHARP (NVLS)"},
}};
constexpr SetupStep kLastStep = {"tuning", "the ranks are at the last steps"};
constexpr std::size_t kFirstUnordered = 4;  // "connect"
constexpr std::size_t kAfterSetup = kSteps.size() + 1;

std::size_t order_of(const SetupEnd& end) {
  if (end.lazy) {
    return kAfterSetup;
  }
  const auto* const found = std::find_if(
      kSteps.begin(), kSteps.end(), [&end](const SetupStep& one) { return one.name == end.step; });
  return std::min(static_cast<std::size_t>(found - kSteps.begin()), kFirstUnordered);
}

/// By the most suspicious transport: one step may use several.
struct TransportSwitch {
  std::string_view transport;
  std::string_view fix;
};
constexpr std::array<TransportSwitch, 7> kSwitches = {{
    {"P2P/CUMEM",
     "Set NCCL_P2P_DISABLE=1, or NCCL_CUMEM_ENABLE=0, to see whether the memory of other GPUs is "
     "the cause; if so, disable the IOMMU or ACS on this machine."},
    {"P2P/",
     "Set NCCL_P2P_DISABLE=1 to see whether the memory of other GPUs is the cause; if so, disable "
     "the IOMMU or ACS on this machine."},
    {"NET/IB",
     "Set NCCL_IB_DISABLE=1 to see whether InfiniBand or RoCE is the cause; if so, check "
     "NCCL_IB_HCA, NCCL_IB_GID_INDEX and the ports."},
    {"NET/Socket",
     "Set NCCL_SOCKET_IFNAME to an interface that reaches the other nodes, and open NCCL's ports "
     "in the firewall."},
    {"NET/",
     "Set NCCL_NET=Socket to see whether the network plugin is the cause; if so, check the plugin "
     "and its devices."},
    {"SHM",
     "Set NCCL_SHM_DISABLE=1 to see whether shared memory is the cause; give the container "
     "--ipc=host."},
    {"direct",
     "Set NCCL_SHM_DISABLE=1 to see whether shared memory is the cause; give the "
     "container --ipc=host."},
}};

std::string_view switch_of(const std::set<std::string>& via) {
  const bool net =
      std::any_of(via.begin(), via.end(), [](const auto& one) { return one.starts_with("NET/"); });
  for (const TransportSwitch& row : kSwitches) {
    const bool of_net = row.transport.starts_with("NET/");
    const bool uses = std::any_of(via.begin(), via.end(), [&row](const std::string& one) {
      return one.starts_with(row.transport);
    });
    if (uses && of_net == net) {  // connections between nodes fail more often
      return row.fix;
    }
  }
  return {};
}

/// World ranks: NCCL numbers the ranks of each communicator from 0.
std::int64_t size_of(const model::Fact& fact) {
  return static_cast<std::int64_t>(fact.number("size").value_or(0));
}

std::int64_t largest_size(const std::vector<const model::Fact*>& setups) {
  std::int64_t size = 0;
  for (const model::Fact* fact : setups) {
    size = std::max(size, size_of(*fact));
  }
  return size;
}

std::optional<model::Rank> rank_of(const model::Fact& fact, std::int64_t world) {
  const auto own = fact.number("group_rank");
  return fact.rank || !own || size_of(fact) != world
             ? fact.rank
             : std::optional(static_cast<model::Rank>(*own));
}

SetupEnd end_of(const model::Fact& fact) {
  SetupEnd end;
  end.host = fact.text("host").value_or("");
  end.pid = fact.pid.value_or(0);
  if (const auto gpu = fact.number("gpu")) {
    end.gpu = static_cast<std::int64_t>(*gpu);
  }
  end.step = fact.text("step").value_or("");
  end.text = fact.text("text").value_or("");
  end.lazy = fact.flag("lazy").value_or(false);
  return end;
}

}  // namespace

std::optional<NcclSetup> unfinished_setup(const model::JobModel& job) {
  NcclSetup out;
  const auto all = model::facts(job, "nccl-setup");
  for (const model::Fact* fact : all) {
    if (fact->flag("failed").value_or(false)) {
      return std::nullopt;  // its error is the cause
    }
  }
  const std::int64_t world = largest_size(all);
  for (const model::Fact* fact : all) {
    const bool finished = fact->flag("finished").value_or(false);
    SetupEnd end = end_of(*fact);
    end.rank = rank_of(*fact, world);
    (finished ? out.finished : out.ends).push_back(std::move(end));
    if (!finished) {
      out.size = std::max(out.size, size_of(*fact));
      for (const std::string& via : fact->list("via")) {
        out.via.insert(via);
      }
    }
  }
  return out.ends.empty() || out.ends.size() + out.finished.size() < 2 ? std::nullopt
                                                                       : std::optional(out);
}

std::map<pid_t, model::Rank> ranks_by_setup(const model::JobModel& job) {
  const auto all = model::facts(job, "nccl-setup");
  const std::int64_t world = largest_size(all);
  std::map<pid_t, model::Rank> out;
  for (const model::Fact* fact : all) {
    const auto rank = rank_of(*fact, world);
    if (rank && fact->pid) {
      out[*fact->pid] = *rank;
    }
  }
  return out;
}

SetupStep step_named(const SetupEnd& end) {
  const auto* const found = std::find_if(
      kSteps.begin(), kSteps.end(), [&end](const auto& step) { return step.name == end.step; });
  return found == kSteps.end() ? kLastStep : *found;
}

std::string fix_of_step(const SetupStep& step, const std::set<std::string>& via) {
  if (step.name == "nvls") {
    return "Set NCCL_NVLS_ENABLE=0 to run without NVLink SHARP. If the job then runs, restart the "
           "fabric manager on this node (`systemctl restart nvidia-fabricmanager`).";
  }
  if (step.name == "network" || step.name == "start") {
    return "Start every rank, and set NCCL_SOCKET_IFNAME to an interface that reaches the other "
           "nodes; open NCCL's ports in the firewall.";
  }
  const std::string_view fix = switch_of(via);
  return fix.empty() ? "Set NCCL_P2P_DISABLE=1, then NCCL_SHM_DISABLE=1, NCCL_NVLS_ENABLE=0 and "
                       "NCCL_IB_DISABLE=1, one at a time: the one with which the job runs names "
                       "the transport."
                     : std::string(fix);
}

bool at_one_step(const NcclSetup& setup) {
  const auto order = order_of(setup.ends.front());
  const bool known = setup.size == 0 ||  // lines of one node only are not all ranks
                     setup.ends.size() <= static_cast<std::size_t>(setup.size);
  return known && setup.finished.empty() && setup.ends.size() > 1 &&
         std::all_of(setup.ends.begin(), setup.ends.end(),
                     [order](const SetupEnd& end) { return order_of(end) == order; });
}

bool is_lazy(const NcclSetup& setup) {
  return std::all_of(setup.ends.begin(), setup.ends.end(),
                     [](const SetupEnd& end) { return end.lazy; });
}

std::optional<SetupEnd> one_behind(const NcclSetup& setup) {
  const std::size_t known = setup.ends.size() + setup.finished.size();
  if (setup.size == 0 || known != static_cast<std::size_t>(setup.size) || known < 3) {
    return std::nullopt;
  }
  const auto first = std::min_element(
      setup.ends.begin(), setup.ends.end(),
      [](const SetupEnd& a, const SetupEnd& b) { return order_of(a) < order_of(b); });
  if (first == setup.ends.end() || first->lazy) {
    return std::nullopt;  // a rank connects to those with which it exchanges data, others to theirs
  }
  const auto order = order_of(*first);
  const auto as_far = std::count_if(setup.ends.begin(), setup.ends.end(),
                                    [&](const SetupEnd& end) { return order_of(end) == order; });
  std::set<std::size_t> others;
  for (const SetupEnd& end : setup.ends) {
    if (order_of(end) != order) {
      others.insert(order_of(end));
    }
  }
  const bool agree = others.size() + (setup.finished.empty() ? 0 : 1) == 1;
  return as_far == 1 && agree ? std::optional(*first) : std::nullopt;
}

bool was_given_up(const model::JobModel& job) {
  constexpr std::array<std::string_view, 10> kWords = {
      "KeyboardInterrupt", "^C",      "Timed out", "timed out",  "Timeout",
      "operation timeout", "SIGTERM", "SIGINT",    "Terminated", "CANCELLED"};
  for (const model::Log& log : job.logs) {
    const std::size_t last = log.text.rfind(" NCCL INFO ");
    const std::string_view below = last == std::string::npos
                                       ? std::string_view()
                                       : std::string_view(log.text).substr(
                                             std::min(log.text.find('\n', last), log.text.size()));
    if (base::contains_any(below, kWords)) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::detectors
