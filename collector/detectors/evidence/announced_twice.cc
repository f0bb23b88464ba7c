// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/announced_twice.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

std::optional<int> count_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == line.npos) {
    return std::nullopt;
  }
  int value = 0;
  const std::string_view rest = line.substr(at + word.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const bool fits = error == std::errc() && value >= 0 && value < model::kMaxWorldSize;
  return fits ? std::optional(value) : std::nullopt;
}

/// Lightning 0.9 to 2.6: "initializing ddp: GLOBAL_RANK: 0, MEMBER: 1/8", later "Initializing
/// distributed: …". It is written before init_process_group().
struct Announcement {
  model::Rank rank = 0;
  int world = 0;
};

std::optional<Announcement> announcement_in(std::string_view line) {
  const auto rank = count_after(line, "GLOBAL_RANK: ");
  const std::size_t member = line.find(", MEMBER: ");
  const auto world =
      rank && member != line.npos ? count_after(line.substr(member), "/") : std::optional<int>();
  return world ? std::optional(Announcement{.rank = *rank, .world = *world}) : std::nullopt;
}

/// "All distributed processes registered. Starting with 8 processes": the rendezvous was complete.
/// Only rank 0 writes it.
bool all_have_started(std::string_view line) {
  return line.find("processes registered. Starting") != line.npos;
}

}  // namespace

std::optional<AnnouncedTwice> announced_twice(const model::JobModel& job) {
  AnnouncedTwice out;
  model::RankSet all;
  model::RankSet seen;
  int world = 0;
  for (const model::Log& log : job.logs) {
    model::RankSet announced;  // since the last line that shows an error
    for (const std::string_view line : base::split(log.text, '\n')) {
      const auto one = announcement_in(line);
      if (all_have_started(line)) {
        return std::nullopt;  // the second announcement is of a second run
      }
      if (!one) {
        if (model::tells_trouble(line)) {
          announced = {};
        }
        continue;
      }
      world = std::max(world, one->world);
      if (announced.contains(one->rank)) {
        out.twice.insert(one->rank);
        out.line = line;
      }
      announced.insert(one->rank);
      seen.insert(one->rank);
    }
  }
  for (model::Rank rank = 0; rank < world; ++rank) {
    all.insert(rank);
  }
  out.never = all.minus(seen);
  // Without the lines of rank 0, it is unknown whether a first run had started.
  const bool nothing = out.twice.empty() || out.never.empty() || !seen.contains(0);
  return nothing ? std::nullopt : std::optional(std::move(out));
}

std::optional<AnnouncedTooFew> announced_too_few(const model::JobModel& job) {
  AnnouncedTooFew out;
  int world = 0;
  bool last = false;  // no other output follows
  int announcing = 0;
  for (const model::Log& log : job.logs) {
    if (log.text.find("GLOBAL_RANK: ") == std::string::npos) {
      continue;
    }
    ++announcing;
    for (const std::string_view line : base::split(log.text, '\n')) {
      const auto one = announcement_in(line);
      if (all_have_started(line)) {
        return std::nullopt;
      }
      if (line.starts_with("$ ") && last) {
        break;  // a shell's prompt: the output was copied with what was typed after it
      }
      if (one) {
        world = std::max(world, one->world);
        out.there.insert(one->rank);
        out.line = line;
      }
      last = base::trim(line).empty() ? last : one.has_value();
    }
  }
  for (model::Rank rank = 0; rank < world; ++rank) {
    if (!out.there.contains(rank)) {
      out.never.insert(rank);
    }
  }
  const bool told = last && announcing == 1 && out.there.size() > 1 && out.there.contains(0) &&
                    !out.never.empty();
  return told ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace ddpdoctor::detectors
