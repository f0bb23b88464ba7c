// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/two_ends.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kUsing = " NCCL INFO NET/IB : Using ";
constexpr std::size_t kMostAdapters = 64;

bool is_of_host(std::string_view line, const std::set<std::string>& hosts) {
  return std::any_of(hosts.begin(), hosts.end(), [line](const std::string& host) {
    const std::size_t at = line.find(host + ":");
    return at != line.npos && (at == 0 || line[at - 1] == ' ');
  });
}

/// "[0]mlx5_0:1/RoCE".
void read_adapter(std::string_view word, Adapters& out) {
  const std::size_t begin = word.find(']');
  const std::size_t colon = word.find(':', begin == word.npos ? 0 : begin);
  if (!word.starts_with('[') || colon == word.npos || out.names.size() >= kMostAdapters) {
    return;
  }
  out.names.insert(base::printable(word.substr(begin + 1, colon - begin - 1)));
  out.roce = out.roce || word.substr(colon).find("/RoCE") != word.npos;
}

/// Of "node1:71:71 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB …" of
/// these machines.
Adapters adapters_of(const model::JobModel& job, const std::set<std::string>& hosts) {
  Adapters out;
  for (const model::Log& log : job.logs) {
    for (std::size_t at = log.text.find(kUsing); at != std::string::npos;
         at = log.text.find(kUsing, at + 1)) {
      const std::string_view text = log.text;
      const std::size_t begin = text.substr(0, at).rfind('\n') + 1;
      if (!is_of_host(text.substr(begin, at - begin), hosts)) {
        continue;
      }
      std::string_view rest = text.substr(at + kUsing.size());
      rest = rest.substr(0, rest.find_first_of(";\n"));
      for (const std::string_view word : base::split(rest, ' ')) {
        read_adapter(word, out);
      }
    }
  }
  return out;
}

/// All machines of which NCCL's lines are known.
std::set<std::string> hosts_of_nccl(const model::JobModel& job) {
  std::set<std::string> out;
  for (const char* const kind : {"nccl-interface", "nccl-setup"}) {
    for (const model::Fact* fact : model::facts(job, kind)) {
      out.insert(fact->text("host").value_or(""));
    }
  }
  return out;
}

/// The other end of this transfer may be the machine of that one: by addresses of InfiniBand where
/// both name them, else because they do not have one peer.
bool may_be_each_other(const model::Fact& one, const model::Fact& other) {
  const auto text = [](const model::Fact& fact, const char* field) {
    return fact.text(field).value_or("");
  };
  if (!text(one, "remote").empty() && !text(other, "local").empty()) {
    return text(one, "remote") == text(other, "local");
  }
  const auto address = [&text](const model::Fact& fact) {
    const std::string peer = text(fact, "peer");
    return peer.substr(0, peer.find('<'));
  };
  return address(one).empty() || address(one) != address(other);
}

/// No transfer of a machine has its other end elsewhere than on the other machine.
bool are_each_others(const std::vector<const model::Fact*>& transfers) {
  return std::all_of(transfers.begin(), transfers.end(), [&transfers](const model::Fact* one) {
    return std::any_of(transfers.begin(), transfers.end(), [one](const model::Fact* other) {
      return one->text("host") != other->text("host") && may_be_each_other(*one, *other);
    });
  });
}

}  // namespace

std::string TwoEnds::text() const {
  constexpr std::size_t kMostNamed = 2;
  const bool few = !adapters.names.empty() && adapters.names.size() <= kMostNamed;
  return fmt::format(
      "{}{}", fmt::join(hosts, " and "),
      few ? fmt::format(" ({}{})", fmt::join(adapters.names, ", "), adapters.roce ? ", RoCE" : "")
          : std::string());
}

std::string TwoEnds::fix() const {
  const std::string device =
      adapters.names.size() == 1 ? " -d " + *adapters.names.begin() : std::string();
  if (adapters.roce) {
    return fmt::format(
        "Set NCCL_IB_GID_INDEX to the RoCE v2 address of these adapters (`show_gids`; often 3). "
        "Check it with `ib_write_bw{} -x 3` between {}; NCCL_IB_DISABLE=1 uses sockets.",
        device, fmt::join(hosts, " and "));
  }
  return fmt::format(
      "Run `ib_write_bw{}` between {}, and check cables, ports and the switch between them "
      "(`ibstat`). With RoCE, set NCCL_IB_GID_INDEX.",
      device, fmt::join(hosts, " and "));
}

std::optional<TwoEnds> both_ends(const model::JobModel& job,
                                 const std::vector<const model::Fact*>& transfers) {
  TwoEnds out;
  for (const model::Fact* fact : transfers) {
    const std::string device = fact->text("device").value_or("");
    out.hosts.insert(fact->text("host").value_or(""));
    if (!device.empty()) {
      out.adapters.names.insert(device);
    }
  }
  std::set<std::string> all = hosts_of_nccl(job);
  all.insert(out.hosts.begin(), out.hosts.end());
  if (out.hosts.size() != 2 || out.hosts.contains("") || all.size() != 2 ||
      !are_each_others(transfers)) {
    return std::nullopt;
  }
  Adapters used = adapters_of(job, out.hosts);
  out.adapters.roce = used.roce;
  out.adapters.names = out.adapters.names.empty() ? std::move(used.names) : out.adapters.names;
  return out;
}

}  // namespace ddpdoctor::detectors
