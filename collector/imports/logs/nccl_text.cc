// SPDX-License-Identifier: Apache-2.0
// In the forms of NCCL 2.3 – 2.32. A failed CUDA call counts only if NCCL says that its functions
// returned an error because of it ("transport/p2p.cc:164 -> 1"): it also tries calls that may fail.
#include "collector/imports/logs/nccl_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/nccl_ranks.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestQuote = 240;
constexpr std::size_t kMostFacts = 4096;  // of one log

struct Address {
  std::string_view name;     // "eth0"
  std::string_view address;  // "172.17.0.2"
};

/// The first interface in "Bootstrap : Using [0]eth0:10.2.0.13<0>", "Bootstrap: Using
/// eth0:10.2.0.13<0>", "NET : Using interface lo:127.0.0.1<0>"; not those of InfiniBand, which have
/// no address.
std::optional<Address> first_interface(std::string_view line) {
  constexpr std::string_view kUsing = ": Using ";
  const auto told = between(line, " NCCL INFO ", "<");
  const std::size_t at = told ? told->find(kUsing) : line.npos;
  if (at == line.npos) {
    return std::nullopt;
  }
  std::string_view text = told->substr(at + kUsing.size());
  take_prefix(text, "interface ");
  take_prefix(text, "[0]");
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view address = text.substr(std::min(colon + 1, text.size()));
  const bool plain = !address.empty() && address.size() < 64 && !name.empty() && name.size() < 32 &&
                     name.find(' ') == name.npos &&
                     address.find_first_not_of("0123456789abcdefABCDEF.:") == address.npos;
  return plain ? std::optional(Address{.name = name, .address = address}) : std::nullopt;
}

/// "NCCL WARN Cuda failure 'out of memory'", "… Cuda failure 2 'out of memory'": what is quoted.
std::optional<std::string_view> failed_call(std::string_view line) {
  std::size_t at = line.find(" WARN ");
  at = at == line.npos ? at : line.find("uda failure ", at);
  return at == line.npos ? std::nullopt : between(line.substr(at), "'", "'");
}

/// "transport/nvls.cc" in "node23:12098:12141 [2] transport/nvls.cc:244 NCCL WARN …".
std::string source_of(std::string_view line) {
  const std::string_view before = base::trim(line.substr(0, line.find(" NCCL WARN ")));
  const std::string_view file = before.substr(before.rfind(' ') + 1);
  return base::printable(file.substr(0, std::min(file.rfind(':'), file.size())));
}

/// "Attribute arch of node cpu not found" of any other warning.
std::string_view warned(std::string_view line) {
  constexpr std::string_view kWarns = " NCCL WARN ";
  const std::size_t at = line.find(kWarns);
  return at == line.npos ? std::string_view() : base::trim(line.substr(at + kWarns.size()));
}

/// ncclInternalError, ncclInvalidArgument, ncclInvalidUsage: not of the network or of CUDA.
bool is_of_nccl_itself(std::int64_t code) {
  return code >= 3 && code <= 5;
}

/// "NCCL INFO init.cc:907 -> 1": one of its functions returned this error; 0 if none did.
std::int64_t returned_error(std::string_view line) {
  const std::size_t at = line.find(" -> ");
  if (line.find(" NCCL INFO ") == line.npos || at == line.npos) {
    return 0;
  }
  std::string_view code = line.substr(at + 4);
  const std::string_view place = line.substr(0, at);
  const std::size_t colon = place.rfind(':');
  const bool of_source =
      colon != place.npos && number_of(place.substr(colon + 1), 1'000'000) &&
      (place.substr(0, colon).ends_with(".cc") || place.substr(0, colon).ends_with(".cu"));
  const auto number = take_number(code, 99);
  return of_source ? number.value_or(0) : 0;
}

/// What a process has said of one of its GPUs so far.
struct NcclProcess {
  std::optional<model::Fact> failure;  // until it is known whether its call returned an error
  bool failed = false;
  std::optional<model::Fact> warning;  // the first one, as `failure`
};

/// "busId 1b000" of a communicator's line: "0000:1b:00.0".
std::optional<std::string> gpu_address_in(std::string_view text) {
  const auto word =
      text.find(" comm 0x") == text.npos ? std::nullopt : between(text, " busId ", " ");
  const auto number = word ? hex_of(fmt::format("0x{}", *word)) : std::nullopt;
  return number && *number >> 36U == 0
             ? std::optional(fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *number >> 20U,
                                         *number >> 12U & 0xffU, *number >> 4U & 0xffU,
                                         *number & 0xfU))
             : std::nullopt;
}

model::Fact fact_of(const NcclTag& tag, std::string_view kind) {
  model::Fact fact{.rank = {}, .pid = tag.pid, .kind = std::string(kind), .fields = {}};
  fact.fields["host"] = base::printable(tag.host);
  if (tag.gpu) {
    fact.fields["gpu"] = *tag.gpu;
  }
  return fact;
}

}  // namespace

void read_nccl_text(std::string_view log, model::JobModel& job) {
  if (log.find("NCCL") == log.npos) {
    return;
  }
  const NcclRanks ranks(log);
  std::map<std::pair<HostPid, std::int64_t>, NcclProcess> known;  // by GPU
  std::set<HostPid> addressed;
  std::set<std::string> gpus;  // by host and address
  std::size_t told = 0;
  const auto add = [&](model::Fact fact) {
    if (told++ < kMostFacts) {
      job.facts.push_back(std::move(fact));
    }
  };
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, kLongestLogLine));
    const auto tag = nccl_tag(line.text);
    if (!tag) {
      continue;
    }
    const HostPid id{std::string(tag->host), tag->pid};
    NcclProcess& process = known[{id, tag->gpu.value_or(-1)}];
    const auto failure_of = [&](std::string_view error) {
      model::Fact fact = fact_of(*tag, "nccl-failure");
      const auto rank = ranks.of(*tag);
      fact.rank = rank ? rank : line.rank;
      fact.fields["source"] = source_of(line.text);
      fact.fields["error"] = base::elide(base::printable(error), kLongestQuote);
      fact.fields["text"] = base::elide(base::printable(base::trim(line.text)), kLongestQuote);
      return fact;
    };
    if (const auto own = first_interface(line.text); own && addressed.insert(id).second) {
      model::Fact fact = fact_of(*tag, "nccl-interface");
      fact.fields["interface"] = base::printable(own->name);
      fact.fields["address"] = std::string(own->address);
      add(std::move(fact));
    } else if (const auto gpu = gpu_address_in(line.text);
               gpu && ranks.of(*tag) && gpus.insert(id.first + *gpu).second) {
      model::Fact fact = fact_of(*tag, "nccl-device");
      fact.rank = ranks.of(*tag);
      fact.fields["address"] = *gpu;
      add(std::move(fact));
    } else if (const auto what = failed_call(line.text); what && !process.failure) {
      process.failure = failure_of(*what);
    } else if (const auto words = warned(line.text); !words.empty() && !process.warning) {
      process.warning = failure_of(words);
    } else if (const std::int64_t code = process.failed ? 0 : returned_error(line.text); code > 0) {
      if (!process.failure && process.warning && is_of_nccl_itself(code)) {
        process.failure = process.warning;
        process.failure->fields["code"] = code;
      }
      if (process.failure) {
        process.failed = true;
        add(*process.failure);
      }
    }
  }
}

}  // namespace ddpdoctor::imports
