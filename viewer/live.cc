// SPDX-License-Identifier: Apache-2.0
#include "viewer/live.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "viewer/layout.h"

namespace ddpdoctor::viewer {
namespace {

constexpr std::size_t kBar = 12;
constexpr std::size_t kNarrow = 70;  // narrower, the bars are omitted
constexpr std::size_t kMostWaits = 8;
constexpr std::size_t kMostGroupsLive = 6;
constexpr std::size_t kFewestRanks = 3;  // shown even on a very small screen

using Lines = std::vector<std::string>;

std::string heading(const graph::LiveView& view) {
  std::string out = "ddpdoctor watch";
  out += view.world_size ? fmt::format(" · {} ranks", *view.world_size) : "";
  out += view.calls_per_second ? fmt::format(" · {:.1f} events/s", *view.calls_per_second) : "";
  out += view.ended ? " · ended" : "";
  out += view.still_for && !view.ended
             ? fmt::format(" · no progress for {}", base::duration(*view.still_for))
             : "";
  return out + (view.title.empty() ? "" : " · " + view.title);
}

std::string group_line(const graph::LiveGroup& group) {
  std::string out = fmt::format("  {} {}", group.name, group.backend);
  if (group.sequence == 0) {
    return out + "  no call yet";
  }
  if (!group.operations.empty()) {
    std::string each;
    for (const auto& [operation, ranks] : group.operations) {
      each += fmt::format("{} {} on {}", each.empty() ? "" : ",", operation, ranks.said());
    }
    return fmt::format("{}  #{}:{}", out, group.sequence, each);
  }
  out += fmt::format("  {} #{}  joined {}", group.operation.empty() ? "call" : group.operation,
                     group.sequence, group.joined.ranges());
  return out + (group.missing.empty() ? "" : fmt::format("  missing {}", group.missing.ranges()));
}

/// The verdict in whole sentences, wrapped: the one part of the screen that is not cut.
Lines verdict_of(const graph::LiveView& view, std::size_t width) {
  Lines out;
  if (!view.verdict) {
    return out;
  }
  constexpr std::size_t kIndent = 2;
  const std::size_t room = std::max<std::size_t>(width, kIndent + 20) - kIndent;
  const graph::LiveVerdict& verdict = *view.verdict;
  for (const std::string& sentence :
       {fmt::format("{}: {} [{}]", verdict.possible ? "warning" : "error",
                    one_line(verdict.summary), verdict.about),
        "fix: " + one_line(verdict.fix)}) {
    for (const std::string& line : wrap(sentence, room)) {
      out.push_back(std::string(kIndent, ' ') + line);
    }
  }
  return out;
}

double longest_lag(const graph::LiveView& view) {
  double longest = 0;
  for (const graph::LiveRank& rank : view.ranks) {
    longest = std::max(longest, rank.lag.value_or(0));
  }
  return longest;
}

std::string rank_line(const graph::LiveRank& rank, double longest, std::size_t width) {
  std::string out = pad(fmt::format("  {}", rank.rank), 7);
  out += pad(rank.pid == 0 ? "" : fmt::format("{}", rank.pid), 9);
  if (width >= kNarrow) {
    out += pad(rank.lag && longest > 0 ? bar(*rank.lag / longest, kBar) : "", kBar + 1);
    out += pad(rank.lag ? lag_text(*rank.lag) : "", 9);
  }
  return out + rank.doing + (rank.place.empty() ? "" : "  " + rank.place);
}

std::string rank_head(std::size_t width) {
  std::string out = pad("  rank", 7) + pad("pid", 9);
  out += width >= kNarrow ? pad("late by", kBar + 10) : "";
  return out + "now";
}

/// At most `most` lines of a section, the rest counted.
void append(Lines& out, const Lines& section, std::size_t most, std::string_view what) {
  const std::size_t shown =
      section.size() <= most ? section.size() : most - std::min<std::size_t>(most, 1);
  out.insert(out.end(), section.begin(), section.begin() + static_cast<std::ptrdiff_t>(shown));
  if (shown < section.size() && most > 0) {
    out.push_back(fmt::format("  and {} more {}", section.size() - shown, what));
  }
}

Lines waits_of(const graph::LiveView& view) {
  Lines out;
  for (const std::string& sentence : view.waits) {
    out.push_back("  " + sentence);
  }
  return out;
}

Lines notes_of(const graph::LiveView& view) {
  Lines out;
  for (const std::string& note : view.notes) {
    out.push_back("  not seen: " + note);
  }
  return out;
}

}  // namespace

std::string lag_text(double seconds) {
  constexpr double kMilli = 1e-3;
  if (!(seconds >= 0)) {
    return "?";
  }
  if (seconds < 1) {
    return fmt::format("{:.{}f} ms", seconds / kMilli, seconds < 10 * kMilli ? 1 : 0);
  }
  return base::duration(seconds);
}

std::string bar(double share, std::size_t columns) {
  const double wanted = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const auto full = static_cast<std::size_t>(std::lround(wanted * static_cast<double>(columns)));
  std::string out;
  for (std::size_t i = 0; i < full; ++i) {
    out += "█";
  }
  return out;
}

std::vector<std::string> live_lines(const graph::LiveView& view, const Screen& screen) {
  Lines groups;
  for (const graph::LiveGroup& group : view.groups) {
    groups.push_back(group_line(group));
  }
  Lines ranks;
  const double longest = longest_lag(view);
  for (const graph::LiveRank& rank : view.ranks) {
    ranks.push_back(rank_line(rank, longest, screen.width));
  }
  Lines lower;
  if (!view.waits.empty()) {
    lower.emplace_back("waiting");
    append(lower, waits_of(view), kMostWaits, "edges");
  }
  append(lower, notes_of(view), 2, "notes");
  Lines out{heading(view)};
  const Lines verdict = verdict_of(view, screen.width);
  out.insert(out.end(), verdict.begin(), verdict.end());
  append(out, groups, kMostGroupsLive, "groups");
  out.push_back(view.ranks.empty() ? "  no rank yet: the launcher has not started one"
                                   : rank_head(screen.width));
  const std::size_t used = out.size() + lower.size();
  const std::size_t room = screen.height == 0                    ? ranks.size()
                           : screen.height > used + kFewestRanks ? screen.height - used
                                                                 : kFewestRanks;
  append(out, ranks, room, "ranks");
  out.insert(out.end(), lower.begin(), lower.end());
  if (screen.height > 0 && out.size() > screen.height) {
    out.resize(screen.height);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    // Indentation is ours and is kept; the rest is untrusted.
    const std::size_t indent = std::min(out[i].find_first_not_of(' '), out[i].size());
    const std::string line =
        fit(std::string(indent, ' ') + one_line(out[i]), std::max<std::size_t>(screen.width, 1));
    out[i] = toned(line, i == 0 ? Tone::kStrong : Tone::kPlain, screen.colour);
  }
  return out;
}

}  // namespace ddpdoctor::viewer
