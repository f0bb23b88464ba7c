// SPDX-License-Identifier: Apache-2.0
#include "collector/model/observed_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {

namespace {

constexpr std::size_t kLongestValue = 64;
constexpr std::size_t kMostGroupsSaid = 4;
constexpr double kMostItems = 1e12;  // items of a loop

constexpr auto kStates = std::to_array<std::pair<ValueState, std::string_view>>({
    {ValueState::kKnown, "known"},
    {ValueState::kStale, "stale"},
    {ValueState::kUnknown, "unknown"},
    {ValueState::kDerived, "derived"},
});

constexpr auto kRoles = std::to_array<std::pair<ValueRole, std::string_view>>({
    {ValueRole::kDecision, "decision"},
    {ValueRole::kOperand, "operand"},
    {ValueRole::kTrace, "trace"},
    {ValueRole::kCaught, "caught"},
    {ValueRole::kLoop, "loop"},
    {ValueRole::kHeld, "held"},
    {ValueRole::kCallee, "callee"},
});

template <typename Table, typename Key>
std::string_view name_in(const Table& table, Key key) {
  const auto found =
      std::find_if(table.begin(), table.end(), [key](const auto& row) { return row.first == key; });
  return found == table.end() ? std::string_view() : found->second;
}

template <typename Key, typename Table>
Key key_in(const Table& table, std::string_view name, Key otherwise) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [name](const auto& row) { return row.second == name; });
  return found == table.end() ? otherwise : found->first;
}

/// A fact may come from an untrusted file.
std::string shown(const Fact& fact, const std::string& field) {
  return base::printable(fact.text(field).value_or(""));
}

int line_in(const Fact& fact, const std::string& field) {
  const double line = fact.number(field).value_or(0);
  return line > 0 && line < 1e9 ? static_cast<int>(line) : 0;
}

std::optional<Rank> rank_of(const JobModel& job, const Fact& fact) {
  if (fact.rank || !fact.pid) {
    return fact.rank;
  }
  const Process* process = model::process(job, *fact.pid);
  return process == nullptr ? std::nullopt : process->rank;
}

/// The functions of a loop over callbacks; empty where the lists do not belong together.
std::vector<CallSite> functions_in(const Fact& fact) {
  const auto files = fact.list("each_file");
  const auto lines = fact.list("each_line");
  const auto names = fact.list("each_function");
  std::vector<CallSite> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i >= files.size() || i >= lines.size()) {
      return {};
    }
    int line = 0;  // stays 0 for text that is not a number
    std::from_chars(lines[i].data(), lines[i].data() + lines[i].size(), line);
    out.push_back({.file = files[i], .line = line, .function = base::printable(names[i])});
  }
  return out;
}

SeenValue seen_value(const JobModel& job, const Fact& fact) {
  SeenValue seen;
  seen.rank = rank_of(job, fact);
  seen.role = key_in(kRoles, fact.text("role").value_or(""), ValueRole::kHeld);
  seen.file = fact.text("file").value_or("");
  seen.line = line_in(fact, "line");
  seen.function = shown(fact, "function");
  seen.at = line_in(fact, "at");
  seen.expression = shown(fact, "expression");
  seen.value = base::elide(shown(fact, "value"), kLongestValue);
  seen.state = key_in(kStates, fact.text("state").value_or(""), ValueState::kUnknown);
  seen.reason = shown(fact, "reason");
  if (const auto items = fact.number("items"); items && *items >= 0 && *items < kMostItems) {
    seen.items = static_cast<std::int64_t>(*items);
  }
  seen.reached = {.file = fact.text("reached_file").value_or(""),
                  .line = line_in(fact, "reached_line"),
                  .function = shown(fact, "reached_function")};
  seen.each = functions_in(fact);
  return seen;
}

std::vector<ValueGroup> grouped(const std::vector<const SeenValue*>& values) {
  std::vector<ValueGroup> groups;
  RankSet counted;
  for (const SeenValue* seen : values) {
    if (counted.contains(*seen->rank)) {
      continue;  // an outer frame of the same function
    }
    counted.insert(*seen->rank);
    const auto same = std::find_if(groups.begin(), groups.end(), [seen](const ValueGroup& group) {
      return group.value == seen->value && group.state == seen->state &&
             (group.state == ValueState::kKnown || group.reason == seen->reason);
    });
    if (same != groups.end()) {
      same->ranks.insert(*seen->rank);
      continue;
    }
    ValueGroup group{.ranks = {},
                     .expression = seen->expression,
                     .value = seen->value,
                     .state = seen->state,
                     .reason = seen->reason,
                     .items = seen->items};
    group.ranks.insert(*seen->rank);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() < b.ranks.size(); });
  return groups;
}

/// A number that follows the rank, or texts that differ only in digits ("cuda:1"), only show which
/// rank this is.
std::string without_digits(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      out += c;
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

bool is_number(std::string_view text) {
  return without_digits(text) == "#" || without_digits(text) == "-#";
}

}  // namespace

std::string_view state_name(ValueState state) {
  return name_in(kStates, state);
}

std::string said_length(std::int64_t items) {
  return fmt::format("{} items", items);
}

Fact fact_of(const SeenValue& seen) {
  Fact fact{.rank = seen.rank, .pid = {}, .kind = std::string(kValueFact), .fields = {}};
  fact.fields["role"] = std::string(name_in(kRoles, seen.role));
  fact.fields["file"] = seen.file;
  fact.fields["line"] = std::int64_t{seen.line};
  fact.fields["function"] = seen.function;
  fact.fields["at"] = std::int64_t{seen.at};
  fact.fields["expression"] = seen.expression;
  fact.fields["state"] = std::string(state_name(seen.state));
  if (!seen.value.empty()) {
    fact.fields["value"] = seen.value;
  }
  if (!seen.reason.empty()) {
    fact.fields["reason"] = seen.reason;
  }
  if (seen.items) {
    fact.fields["items"] = *seen.items;
  }
  if (seen.reached.known()) {
    fact.fields["reached_file"] = seen.reached.file;
    fact.fields["reached_line"] = std::int64_t{seen.reached.line};
    fact.fields["reached_function"] = seen.reached.function;
  }
  if (!seen.each.empty()) {
    std::vector<std::string> files;
    std::vector<std::string> lines;
    std::vector<std::string> names;
    for (const CallSite& one : seen.each) {
      files.push_back(one.file);
      lines.push_back(std::to_string(one.line));
      names.push_back(one.function);
    }
    fact.fields["each_file"] = std::move(files);
    fact.fields["each_line"] = std::move(lines);
    fact.fields["each_function"] = std::move(names);
  }
  return fact;
}

std::vector<SeenValue> observed_values(const JobModel& job) {
  std::vector<SeenValue> out;
  for (const Fact* fact : facts(job, kValueFact)) {
    SeenValue seen = seen_value(job, *fact);
    if (seen.rank) {
      out.push_back(std::move(seen));
    }
  }
  return out;
}

std::vector<ValueGroup> values_at(const JobModel& job, std::string_view file, int line) {
  std::vector<SeenValue> here;
  for (const Fact* fact : facts(job, kValueFact)) {
    if (fact->text("file") == file && line_in(*fact, "line") == line) {
      here.push_back(seen_value(job, *fact));
    }
  }
  std::vector<std::pair<std::string, std::vector<const SeenValue*>>> decided;
  std::vector<std::pair<std::string, std::vector<const SeenValue*>>> read;
  for (const SeenValue& seen : here) {
    if (!seen.rank || seen.role == ValueRole::kHeld) {
      continue;
    }
    const bool beside = seen.role == ValueRole::kOperand || seen.role == ValueRole::kTrace ||
                        seen.role == ValueRole::kCallee;
    auto& into = beside ? read : decided;
    auto same = std::find_if(into.begin(), into.end(),
                             [&seen](const auto& one) { return one.first == seen.expression; });
    if (same == into.end()) {
      same = into.insert(into.end(), {seen.expression, {}});
    }
    same->second.push_back(&seen);
  }
  std::vector<ValueGroup> out;
  for (const auto& [expression, values] : decided) {
    const auto groups = grouped(values);
    out.insert(out.end(), groups.begin(), groups.end());
  }
  for (const auto& [expression, values] : read) {
    const auto groups = grouped(values);
    if (groups.size() > 1) {
      out.insert(out.end(), groups.begin(), groups.end());
    }
  }
  return out;
}

std::vector<ReachedBy> callees_at(const JobModel& job, std::string_view file, int line,
                                  const RankSet& ranks) {
  std::vector<ReachedBy> out;
  std::vector<RankSet> known;
  for (const Fact* fact : facts(job, kValueFact)) {
    if (fact->text("role") != "callee" || fact->text("file") != file ||
        line_in(*fact, "line") != line) {
      continue;
    }
    const SeenValue seen = seen_value(job, *fact);
    if (!seen.rank || !ranks.contains(*seen.rank) || seen.state == ValueState::kUnknown) {
      continue;
    }
    const auto at = std::find_if(out.begin(), out.end(), [&seen](const ReachedBy& one) {
      return one.expression == seen.expression;
    });
    const auto place = static_cast<std::size_t>(at - out.begin());
    if (at == out.end()) {
      out.push_back({.expression = seen.expression, .functions = {}});
      known.emplace_back();
    }
    if (known[place].contains(*seen.rank)) {
      continue;  // a frame further out of the same function
    }
    known[place].insert(*seen.rank);
    out[place].stale = out[place].stale || seen.state == ValueState::kStale;
    auto& functions = out[place].functions;
    auto same = std::find_if(functions.begin(), functions.end(), [&seen](const auto& one) {
      return one.text == seen.value && one.each == seen.each;
    });
    if (same == functions.end()) {
      same = functions.insert(functions.end(), {seen.value, seen.reached, seen.each, RankSet()});
    }
    same->ranks.insert(*seen.rank);
  }
  for (std::size_t i = out.size(); i-- > 0;) {
    if (known[i].size() != ranks.size()) {
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return out;
}

std::string said(const std::vector<ValueGroup>& groups) {
  std::string out;
  for (std::size_t i = 0; i < groups.size() && i < kMostGroupsSaid; ++i) {
    const ValueGroup& group = groups[i];
    out += i == 0 ? "" : ", ";
    if (group.state == ValueState::kUnknown) {
      out += fmt::format("unknown on {} ({})", group.ranks.said(), group.reason);
    } else if (group.state == ValueState::kStale) {
      out += fmt::format("now {} on {} ({})", group.value, group.ranks.said(), group.reason);
    } else if (group.state == ValueState::kDerived) {
      out += fmt::format("{} on {} ({})", group.value, group.ranks.said(), group.reason);
    } else {
      out += fmt::format("{} on {}", group.value, group.ranks.said());
    }
  }
  return out + (groups.size() > kMostGroupsSaid ? ", …" : "");
}

void drop_idle_values(std::vector<Fact>& facts) {
  using Key = std::tuple<std::string, std::string, std::string>;  // file, function, expression
  struct Seen {
    std::set<std::string> values;
    std::set<std::string> shapes;
    bool numbers = true;
    std::size_t count = 0;
  };
  std::map<Key, Seen> all;
  const auto is_callee = [](const Fact& fact) { return fact.text("role") == "callee"; };
  const auto key_of = [&is_callee](const Fact& fact) {
    const std::string line = is_callee(fact) ? fmt::format(":{}", line_in(fact, "line")) : "";
    return Key{fact.text("file").value_or("") + line, fact.text("function").value_or(""),
               fact.text("expression").value_or("")};
  };
  const auto is_held = [&is_callee](const Fact& fact) {
    return fact.kind == kValueFact && (fact.text("role") == "held" || is_callee(fact));
  };
  for (const Fact& fact : facts) {
    if (is_held(fact)) {
      Seen& seen = all[key_of(fact)];
      const std::string value = fact.text("value").value_or("");
      // A list of many callbacks is shown in part.
      std::string whole = value;
      for (const std::string& function : fact.list("each_function")) {
        whole += "\n" + function;
      }
      seen.values.insert(std::move(whole));
      seen.shapes.insert(without_digits(value));
      seen.numbers = seen.numbers && is_number(value);
      ++seen.count;
    }
  }
  // A rank may wait for that file, and be the only one that holds its path.
  const auto names_a_file = [](const Fact& fact) {
    return fact.text("value").value_or("").starts_with("'/");
  };
  std::erase_if(facts, [&](const Fact& fact) {
    if (!is_held(fact) || names_a_file(fact)) {
      return false;
    }
    const Seen& seen = all[key_of(fact)];
    const bool alike = seen.values.size() == 1;
    if (is_callee(fact)) {
      return alike;
    }
    const bool names_the_rank = seen.shapes.size() == 1 && !seen.numbers;
    const bool all_unlike = seen.values.size() == seen.count && seen.count > 2;
    return alike || names_the_rank || all_unlike;
  });
}

void keep_reported_values(std::vector<Fact>& facts, const Reported& reported) {
  const auto has_line = [&reported](const Fact& fact) {
    const std::pair<std::string, int> place{fact.text("file").value_or(""), line_in(fact, "line")};
    return std::find(reported.lines.begin(), reported.lines.end(), place) != reported.lines.end();
  };
  const auto is_quoted = [&reported](const Fact& fact) {
    const std::string quote = "`" + fact.text("expression").value_or("") + "` is ";
    return std::any_of(
        reported.sentences.begin(), reported.sentences.end(),
        [&quote](const std::string& sentence) { return sentence.starts_with(quote); });
  };
  std::erase_if(facts, [&](const Fact& fact) {
    return fact.kind == kValueFact &&
           !(fact.text("role") == "held" ? is_quoted(fact) : has_line(fact));
  });
}

}  // namespace ddpdoctor::model
