// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/actors.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/coordinates.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestLabel = 200;
constexpr std::size_t kMostActors = 70'000;
constexpr std::size_t kMostNamed = 8;  // processes that a warning names

/// A label and the text around it.
struct Actor {
  std::string_view before;  // times, and the prefix of a container
  std::string_view label;   // empty: the line has no label
  std::string_view rest;
  std::optional<model::Rank> rank;  // named by other prefixes of the line
  Coordinates place;
};

/// "(Worker_TP1 pid=291275)", "(WorkerDict pid=7, ip=10.0.0.3)"; for a vLLM worker, its
/// coordinates.
bool take_round(std::string_view text, Actor& out) {
  const std::size_t end = text.substr(0, kLongestLabel).find(')');
  if (!text.starts_with('(') || end == text.npos ||
      text.substr(0, end).find(" pid=") == text.npos) {
    return false;
  }
  out.label = text.substr(0, end + 1);
  std::string_view name = text.substr(1, text.find(' ') - 1);
  const bool worker = name.find("Worker_") != name.npos;
  name.remove_prefix(std::min(name.find('_') + 1, name.size()));
  out.place = worker ? coordinates_of(name) : Coordinates();
  return true;
}

/// "[2026-01-29 13:12:37 PP1 TP0]": SGLang's schedulers.
bool take_square(std::string_view text, Actor& out) {
  const std::size_t end = text.substr(0, kLongestLabel).find(']');
  if (!text.starts_with('[') || end == text.npos) {
    return false;
  }
  const std::string_view inside = text.substr(1, end - 1);
  constexpr std::size_t kMoment = 19;  // "2026-01-29 13:12:37"
  const bool timed = inside.size() > kMoment + 1 && inside[4] == '-' && inside[10] == ' ' &&
                     inside[13] == ':' && inside[16] == ':' && inside[kMoment] == ' ';
  out.place = timed ? coordinates_of(inside.substr(kMoment + 1)) : Coordinates();
  if (out.place.empty()) {
    return false;
  }
  out.label = text.substr(0, end + 1);
  return true;
}

/// A label may follow a time or a container's name.
Actor actor_of(std::string_view line) {
  Actor out;
  for (const char open : {'(', '['}) {
    for (std::size_t at = line.substr(0, kLongestLabel).find(open); at < kLongestLabel;
         at = line.substr(0, kLongestLabel).find(open, at + 1)) {
      if (open == '(' ? take_round(line.substr(at), out) : take_square(line.substr(at), out)) {
        out.before = line.substr(0, at);
        out.rest = line.substr(at + out.label.size());
        take_prefix(out.rest, " ");
        const auto ahead = model::read_log_line(out.before);
        const auto behind = model::read_log_line(out.rest);
        const auto own = model::read_log_line(line.substr(at));
        out.rank = behind.rank ? behind.rank : own.rank ? own.rank : ahead.rank;
        // "training (epoch 3 pid=7)": words of a sentence, not a label.
        const bool leads = ahead.text.empty() || base::trim(ahead.text).ends_with('|');
        return leads ? out : Actor();
      }
    }
  }
  return out;
}

/// An actor's label without the time in it.
std::string key_of(const Actor& actor) {
  return actor.label.starts_with('[') ? said(actor.place) : std::string(actor.label);
}

struct Known {
  std::map<std::string, std::set<model::Rank>> told;  // named by other lines of the actor
  std::set<Coordinates> places;
  // Some actor does not belong to a server: coordinates are then not the job's ranks.
  bool of_a_job = false;
};

Known survey(const std::vector<std::string_view>& lines) {
  Known out;
  for (const std::string_view line : lines) {
    const Actor actor = actor_of(line.substr(0, kLongestLogLine));
    if (actor.label.empty() || out.told.size() >= kMostActors) {
      continue;
    }
    auto& ranks = out.told[key_of(actor)];
    if (actor.rank) {
      ranks.insert(*actor.rank);
    }
    if (!actor.place.empty() && out.places.size() < kMostActors) {
      out.places.insert(actor.place);
    }
    out.of_a_job = out.of_a_job || (actor.place.empty() && actor.rank &&
                                    actor.label.find("rank=") == actor.label.npos);
  }
  return out;
}

std::string numbering(const std::map<Coordinates, model::Rank>& ranks) {
  std::string out;
  std::size_t named = 0;
  for (const auto& [place, rank] : ranks) {
    if (named++ < kMostNamed) {
      out += fmt::format("{}rank {} is {}", out.empty() ? ": " : ", ", rank, said(place));
    }
  }
  return out;
}

/// Lines after a label of a logger that writes it only before the first line of a message: the
/// frames of a traceback, its exception, and chained tracebacks.
class Continuation {
 public:
  void begin(std::string_view rest, std::optional<model::Rank> rank) {
    rank_ = rest.find(kTraceback) == rest.npos ? std::nullopt : rank;
    over_ = false;
  }
  /// The rank of this line without a label.
  std::optional<model::Rank> whose(std::string_view line) {
    const bool chained = line.find("above exception, another exception") != line.npos ||
                         line.find("direct cause of the following") != line.npos ||
                         line.starts_with(kTraceback);
    if (rank_ && over_ && !chained && !base::trim(line).empty()) {
      rank_.reset();
    }
    over_ = chained ? false : over_ || (!line.empty() && line.front() != ' ');
    return rank_;
  }

 private:
  static constexpr std::string_view kTraceback = "Traceback (most recent call last)";
  std::optional<model::Rank> rank_;
  bool over_ = false;
};

/// Several numbers identify a process: its rank depends on the layout.
bool is_layout(const std::set<Coordinates>& places) {
  return std::any_of(places.begin(), places.end(), [](const Coordinates& place) {
    return place.size() != 1 || !place.contains("TP");
  });
}

}  // namespace

Labels with_actors_named(std::string_view text) {
  constexpr std::array<std::string_view, 4> kPlaces = {"TP", "DP", "PP", "EP"};
  if (text.find(" pid=") == text.npos && !base::contains_any(text, kPlaces)) {
    return {};
  }
  const auto lines = base::split(text, '\n');
  const Known known = survey(lines);
  if (known.told.empty()) {
    return {};
  }
  const auto placed =
      known.of_a_job ? std::map<Coordinates, model::Rank>() : ranks_of(known.places);
  Labels out;
  bool any = false;
  Continuation message;
  for (const std::string_view line : lines) {
    const Actor actor = actor_of(line.substr(0, kLongestLogLine));
    std::optional<model::Rank> rank;
    if (!actor.label.empty() && line.size() <= kLongestLogLine && !actor.rank) {
      const auto told = known.told.find(key_of(actor));
      const auto place = placed.find(actor.place);
      rank = told != known.told.end() && told->second.size() == 1
                 ? std::optional(*told->second.begin())
             : place != placed.end() && !actor.place.empty() ? std::optional(place->second)
                                                             : std::nullopt;
    }
    if (actor.label.starts_with('[')) {
      message.begin(actor.rest, rank);
    } else if (actor.label.empty() && !model::read_log_line(line.substr(0, kLongestLogLine)).rank) {
      const auto whose = message.whose(line);
      out.text += whose ? fmt::format("[rank{}]: {}\n", *whose, line) : fmt::format("{}\n", line);
      continue;
    }
    if (rank) {
      any = true;
      out.text += fmt::format("{}[rank{}]: {}\n", actor.before, *rank, actor.rest);
    } else {
      out.text += fmt::format("{}\n", line);
    }
  }
  if (!any) {
    return {};
  }
  if (!placed.empty() && is_layout(known.places)) {
    out.warning = fmt::format(
        "the log names processes by their place in the layout; their ranks are counted from it{}",
        numbering(placed));
  }
  return out;
}

bool folds_lines(std::string_view text) {
  return text.find("x across cluster]") != text.npos;
}

}  // namespace ddpdoctor::imports
