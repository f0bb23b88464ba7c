// SPDX-License-Identifier: Apache-2.0
#include "viewer/leftovers.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "viewer/layout.h"

namespace ddpdoctor::viewer {
namespace {

using leftovers::Kind;
using leftovers::Leftover;

constexpr std::size_t kMostOfAKind = 50;

std::string plural(std::string_view word, std::size_t count) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : word.ends_with('s') ? "es" : "s");
}

std::string line_of(const Leftover& one) {
  std::string what = one.name;
  if (one.kind != Kind::kProcess) {
    what += fmt::format("  {}, ", base::bytes(static_cast<double>(one.bytes)));
  } else {
    what += "  started ";
  }
  what += fmt::format("{} ago, uid {}", base::duration(one.age), one.uid);
  return one.detail.empty() ? what : what + "  " + one.detail;
}

}  // namespace

std::string leftovers_sum(const std::vector<Leftover>& found) {
  std::string out;
  for (const Kind kind : {Kind::kSegment, Kind::kProcess, Kind::kSpool}) {
    double bytes = 0;
    std::size_t count = 0;
    for (const Leftover& one : found) {
      count += one.kind == kind ? 1 : 0;
      bytes += one.kind == kind ? static_cast<double>(one.bytes) : 0;
    }
    if (count > 0) {
      out += (out.empty() ? "" : ", ") + plural(leftovers::kind_name(kind), count);
      out += kind == Kind::kProcess ? "" : fmt::format(" ({})", base::bytes(bytes));
    }
  }
  return out;
}

std::string leftovers_text(const std::vector<Leftover>& found, std::size_t width) {
  constexpr std::size_t kIndent = 13;
  std::string out;
  for (const Kind kind : {Kind::kSegment, Kind::kProcess, Kind::kSpool}) {
    std::size_t shown = 0;
    std::size_t more = 0;
    for (const Leftover& one : found) {
      if (one.kind != kind) {
        continue;
      }
      if (shown++ >= kMostOfAKind) {
        ++more;
        continue;
      }
      out += pad(leftovers::state_name(one.state), kIndent) +
             fit(one_line(line_of(one)), width - kIndent) + "\n";
      out += std::string(kIndent, ' ') + fit(one_line(one.why), width - kIndent) + "\n";
    }
    if (more > 0) {
      out += fmt::format("{}and {} more\n", std::string(kIndent, ' '),
                         plural(leftovers::kind_name(kind), more));
    }
  }
  return out;
}

std::string leftovers_json(const std::vector<Leftover>& found,
                           const std::vector<std::string>& removed) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Leftover& one : found) {
    nlohmann::ordered_json entry{{"kind", leftovers::kind_name(one.kind)},
                                 {"name", one.name},
                                 {"state", leftovers::state_name(one.state)},
                                 {"why", one.why},
                                 {"uid", one.uid},
                                 {"age_seconds", one.age}};
    if (one.kind == Kind::kProcess) {
      entry["pid"] = one.pid;
      entry["command"] = one.detail;
    } else {
      entry["bytes"] = one.bytes;
    }
    if (one.creator) {
      entry["creator_pid"] = *one.creator;
    }
    if (one.rank) {
      entry["rank"] = *one.rank;
    }
    entry["removed"] = std::find(removed.begin(), removed.end(), one.name) != removed.end();
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json whole{{"schema", "ddpdoctor.clean/1"},
                                     {"leftovers", std::move(list)}};
  return whole.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpdoctor::viewer
