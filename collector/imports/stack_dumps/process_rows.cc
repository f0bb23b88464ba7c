// SPDX-License-Identifier: Apache-2.0
// The columns come from the header, else from the options of the command (a `grep` behind it
// removes the header), else from the shape of a row.
#include "collector/imports/stack_dumps/process_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

constexpr std::size_t kMostRows = 20'000;
constexpr std::size_t kMostColumns = 40;
constexpr std::size_t kMostStrange = 3;  // lines between two rows of a table
constexpr std::size_t kLongestRow = 16'384;

constexpr string_view kDefunct = " <defunct>";

enum class Column { kOther, kPid, kPpid, kState, kWchan, kCommand };

/// Names in a header and in the list of `-o`.
Column column_of(string_view name) {
  constexpr std::array<std::pair<string_view, Column>, 17> kNames = {{
      {"PID", Column::kPid},
      {"pid", Column::kPid},
      {"PPID", Column::kPpid},
      {"ppid", Column::kPpid},
      {"S", Column::kState},
      {"s", Column::kState},
      {"STAT", Column::kState},
      {"stat", Column::kState},
      {"state", Column::kState},
      {"WCHAN", Column::kWchan},
      {"wchan", Column::kWchan},
      {"CMD", Column::kCommand},
      {"cmd", Column::kCommand},
      {"COMMAND", Column::kCommand},
      {"command", Column::kCommand},
      {"args", Column::kCommand},
      {"comm", Column::kCommand},
  }};
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [name](const auto& one) { return one.first == name; });
  return found == kNames.end() ? Column::kOther : found->second;
}

using Columns = std::vector<Column>;

bool has(const Columns& columns, Column one) {
  return std::find(columns.begin(), columns.end(), one) != columns.end();
}

std::vector<string_view> columns_in(string_view line, std::size_t most) {
  std::vector<string_view> out;
  while (out.size() < most) {
    line = base::trim(line);
    if (line.empty()) {
      break;
    }
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    out.push_back(out.size() + 1 == most ? line : line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

/// "UID  PID  PPID  C STIME TTY  TIME CMD".
std::optional<Columns> header(string_view line) {
  const auto names = columns_in(line.substr(0, kLongestRow), kMostColumns);
  Columns columns;
  for (const string_view name : names) {
    columns.push_back(column_of(name));
  }
  const bool last = !columns.empty() && columns.back() == Column::kCommand;
  return last && names.size() >= 2 && has(columns, Column::kPid) &&
                 std::none_of(
                     names.begin(), names.end(),
                     [](string_view name) { return name.find_first_of("0123456789") != name.npos; })
             ? std::optional(columns)
             : std::nullopt;
}

/// "$ ps -eo pid,ppid,stat,wchan:24,cmd | grep train".
std::optional<Columns> options_of(string_view line) {
  const std::size_t at = line.find("ps ");
  if (at == line.npos || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '/')) {
    return std::nullopt;
  }
  bool list = false;
  for (const string_view word : columns_in(line.substr(at, kLongestRow), kMostColumns)) {
    if (list) {
      Columns columns;
      for (const string_view name : base::split(word, ',')) {
        columns.push_back(column_of(name.substr(0, name.find(':'))));
      }
      return columns.back() == Column::kCommand && has(columns, Column::kPid)
                 ? std::optional(columns)
                 : std::nullopt;
    }
    list = word == "-o" || word == "o" || (word.starts_with('-') && word.ends_with('o'));
  }
  return Columns();  // the shape of a row shows it
}

bool is_terminal(string_view text) {
  return text == "?" || text.starts_with("pts/") || text.starts_with("tty");
}

bool is_number(string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "1:12", "01:12:40", "2-01:12:40".
bool is_clock(string_view text) {
  return text.size() >= 4 && text.find(':') != text.npos &&
         text.find_first_not_of("0123456789:-.") == text.npos;
}

/// The columns of a row of `ps -ef`, `ps aux`, `ps axj` or `ps ax`.
Columns shape_of(string_view line) {
  using enum Column;
  const auto words = columns_in(line, 12);
  const auto number = [&words](std::size_t i) { return i < words.size() && is_number(words[i]); };
  const auto clock = [&words](std::size_t i) { return i < words.size() && is_clock(words[i]); };
  const auto terminal = [&words](std::size_t i) {
    return i < words.size() && is_terminal(words[i]);
  };
  if (number(1) && number(2) && number(3) && terminal(5) && clock(6)) {
    return {kOther, kPid, kPpid, kOther, kOther, kOther, kOther, kCommand};
  }
  if (number(1) && number(4) && number(5) && terminal(6) && clock(9)) {
    return {kOther, kPid, kOther, kOther, kOther, kOther, kOther, kState, kOther, kOther, kCommand};
  }
  if (number(0) && number(1) && number(2) && number(3) && terminal(4) && clock(8)) {
    return {kPpid, kPid, kOther, kOther, kOther, kOther, kState, kOther, kOther, kCommand};
  }
  if (number(0) && terminal(1) && clock(3)) {
    return {kPid, kOther, kState, kOther, kCommand};
  }
  return {};
}

/// A command without the marks of a tree: "| \_ python".
string_view without_branch(string_view command) {
  const std::size_t branch = command.find("\\_ ");
  const bool tree =
      branch != command.npos && command.substr(0, branch).find_first_not_of(" |") == command.npos;
  return tree ? command.substr(branch + 3) : command;
}

std::optional<ProcessRow> row_of(string_view line, const Columns& columns) {
  const auto words = columns_in(line.substr(0, kLongestRow), columns.size());
  if (columns.empty() || words.size() < columns.size()) {
    return std::nullopt;
  }
  ProcessRow row;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto number = number_of(words[i], kMaxPid);
    switch (columns[i]) {
      case Column::kPid:
        if (!number || *number == 0) {
          return std::nullopt;
        }
        row.pid = static_cast<pid_t>(*number);
        break;
      case Column::kPpid:
        if (!number) {
          return std::nullopt;
        }
        row.ppid = static_cast<pid_t>(*number);
        break;
      case Column::kState:
        row.state = string_view("DRSTtXZI").find(words[i].front()) == string_view::npos
                        ? '?'
                        : words[i].front();
        break;
      case Column::kWchan:
        row.wchan = words[i] == "-" ? std::string() : base::elide(words[i], kLongestName);
        break;
      case Column::kCommand:
        row.command = base::elide(without_branch(base::trim(words[i])), kLongestName);
        row.state = row.command.ends_with(kDefunct) ? 'Z' : row.state;
        break;
      case Column::kOther:
        break;
    }
  }
  return row;
}

/// "   6473          \_ python3.11", or the root of such a tree: a pid and its command alone.
struct Branch {
  pid_t pid = 0;
  std::size_t column = 0;
  string_view command;
  bool marked = false;
};

std::optional<Branch> branch_of(string_view line) {
  const std::size_t digit = line.find_first_not_of(' ');
  string_view rest = digit == line.npos ? string_view() : line.substr(digit);
  const auto pid = take_number(rest, kMaxPid);
  if (!pid || *pid == 0 || !rest.starts_with(' ')) {
    return std::nullopt;
  }
  const std::size_t mark = rest.find("\\_ ");
  const bool marked =
      mark != rest.npos && rest.substr(0, mark).find_first_not_of(" |") == rest.npos;
  const std::size_t begin = marked ? mark : rest.find_first_not_of(' ');
  if (begin == rest.npos) {
    return std::nullopt;
  }
  return Branch{.pid = static_cast<pid_t>(*pid),
                .column = line.size() - rest.size() + begin,
                .command = rest.substr(marked ? begin + 3 : begin),
                .marked = marked};
}

/// The tree that begins at `from`; the number of its lines.
std::size_t read_tree(std::span<const string_view> lines, std::size_t from,
                      std::vector<ProcessRow>& out) {
  std::vector<Branch> open;
  std::size_t at = from;
  for (; at < lines.size() && out.size() < kMostRows; ++at) {
    const auto branch = branch_of(lines[at]);
    if (!branch || (!branch->marked && at > from)) {
      break;
    }
    while (!open.empty() && open.back().column >= branch->column) {
      open.pop_back();
    }
    ProcessRow row;
    row.pid = branch->pid;
    row.ppid = open.empty() ? std::nullopt : std::optional(open.back().pid);
    string_view command = branch->command;
    if (command.ends_with(kDefunct)) {
      command.remove_suffix(kDefunct.size());
      row.state = 'Z';
    }
    row.command = base::elide(command, kLongestName);
    out.push_back(std::move(row));
    open.push_back(*branch);
  }
  return at - from;
}

bool begins_tree(std::span<const string_view> lines, std::size_t at) {
  const auto first = branch_of(lines[at]);
  const auto second = at + 1 < lines.size() ? branch_of(lines[at + 1]) : std::nullopt;
  return first && (first->marked || (second && second->marked && second->column > first->column));
}

bool may_begin(string_view line) {
  return line.size() < kLongestRow &&
         (line.find("PID") != line.npos || line.find("ps ") != line.npos ||
          line.find("\\_ ") != line.npos);
}

}  // namespace

std::vector<ProcessRow> process_rows(std::span<const string_view> lines) {
  std::vector<ProcessRow> out;
  for (std::size_t i = 0; i < lines.size() && out.size() < kMostRows; ++i) {
    const bool tree = may_begin(lines[i]) || (i + 1 < lines.size() && may_begin(lines[i + 1]));
    if (!tree) {
      continue;
    }
    if (begins_tree(lines, i)) {
      i += std::max<std::size_t>(read_tree(lines, i, out), 1) - 1;
      continue;
    }
    auto columns = header(lines[i]);
    columns = columns ? columns : options_of(lines[i]);
    std::size_t strange = 0;
    for (std::size_t k = i + 1; columns && k < lines.size() && strange < kMostStrange; ++k) {
      if (const auto other = header(lines[k])) {
        columns = other;
        continue;
      }
      auto row = row_of(lines[k], columns->empty() ? shape_of(lines[k]) : *columns);
      strange = row ? 0 : strange + 1;
      if (row && out.size() < kMostRows) {
        out.push_back(std::move(*row));
        i = k;
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports
