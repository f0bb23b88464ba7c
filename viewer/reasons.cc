// SPDX-License-Identifier: Apache-2.0
#include "viewer/reasons.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "viewer/layout.h"
#include "viewer/rank_words.h"

namespace ddpdoctor::viewer {

namespace {

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// The finding already shows the line of this evidence and its words.
bool is_above(const detectors::Finding& finding, const detectors::Shown& shown,
              const std::vector<std::size_t>& before) {
  const auto here = [&shown](const detectors::Location& where) {
    return where.file == shown.file && where.line == shown.line;
  };
  const auto in_note = [&shown](const detectors::Location& where) {
    return contains(where.note, shown.words);
  };
  const auto in_evidence = [&](std::size_t index) {
    return contains(finding.evidence[index].text, shown.words);
  };
  const bool listed =
      shown.file.empty() || std::any_of(finding.locations.begin(), finding.locations.end(), here);
  return listed && (contains(finding.summary, shown.words) ||
                    std::any_of(finding.locations.begin(), finding.locations.end(), in_note) ||
                    std::any_of(before.begin(), before.end(), in_evidence));
}

/// "rank 0 is asleep" as its verb and what follows; nothing where a fact does not begin so.
std::optional<std::pair<std::string, std::string>> deed_of(model::Rank rank,
                                                           const std::string& text) {
  const std::string who = fmt::format("rank {} ", rank);
  constexpr std::array<std::string_view, 5> kVerbs{"is ", "has ", "was ", "waits ", "does "};
  for (const std::string_view verb : kVerbs) {
    if (text.starts_with(who + std::string(verb))) {
      return std::pair(std::string(verb), text.substr(who.size() + verb.size()));
    }
  }
  return std::nullopt;
}

/// One fact, and all ranks of which it is true.
struct Fact {
  std::string verb;  // with the ranks as its subject; empty: "ranks 0 and 1: text"
  std::string text;
  model::RankSet ranks;  // empty: the text names them itself, or nobody
};

Fact fact_of(const detectors::Evidence& evidence) {
  std::string text = one_line(evidence.text);
  if (!evidence.rank) {
    return {.verb = {}, .text = std::move(text), .ranks = {}};
  }
  if (auto deed = deed_of(*evidence.rank, text)) {
    return {
        .verb = std::move(deed->first), .text = std::move(deed->second), .ranks = {*evidence.rank}};
  }
  const bool named =
      text.starts_with("rank") || contains(text, fmt::format("rank {} ", *evidence.rank));
  return {.verb = {},
          .text = std::move(text),
          .ranks = named ? model::RankSet{} : model::RankSet{*evidence.rank}};
}

std::string_view plural_verb(std::string_view verb) {
  return verb == "is "      ? "are "
         : verb == "has "   ? "have "
         : verb == "was "   ? "were "
         : verb == "waits " ? "wait "
                            : "do ";
}

std::string said(const Fact& fact) {
  if (fact.ranks.empty()) {
    return fact.text;
  }
  const std::string who = rank_words(fact.ranks);
  if (fact.verb.empty()) {
    return fmt::format("{}: {}", who, fact.text);
  }
  return fmt::format("{} {}{}", who,
                     fact.ranks.size() > 1 ? plural_verb(fact.verb) : std::string_view(fact.verb),
                     fact.text);
}

}  // namespace

std::vector<std::string> reasons(const detectors::Finding& finding) {
  std::vector<std::size_t> fresh;
  std::vector<Fact> facts;
  for (std::size_t i = 0; i < finding.evidence.size(); ++i) {
    const detectors::Evidence& evidence = finding.evidence[i];
    const bool again = evidence.text.empty() || contains(finding.summary, evidence.text) ||
                       (evidence.shown && is_above(finding, *evidence.shown, fresh));
    if (again) {
      continue;
    }
    fresh.push_back(i);
    Fact fact = fact_of(evidence);
    const auto same = std::find_if(facts.begin(), facts.end(), [&fact](const Fact& one) {
      return one.verb == fact.verb && one.text == fact.text &&
             one.ranks.empty() == fact.ranks.empty();
    });
    if (same == facts.end()) {
      facts.push_back(std::move(fact));
    } else {
      same->ranks = same->ranks.united(fact.ranks);
    }
  }
  std::vector<std::string> out;
  out.reserve(facts.size());
  for (const Fact& fact : facts) {
    out.push_back(said(fact));
  }
  return out;
}

}  // namespace ddpdoctor::viewer
