// SPDX-License-Identifier: Apache-2.0
// The stack tree of all ranks in text: chains on one line, branches only where ranks diverge.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "viewer/formats/text_parts.h"
#include "viewer/layout.h"
#include "viewer/stack_folding.h"

namespace ddpdoctor::viewer {

namespace {

constexpr std::string_view kStackIndent = "  ";
constexpr std::string_view kJoin = " · ";
constexpr std::size_t kWidestRanks = 32;       // longer rank sets are shown as a count
constexpr std::size_t kMostBranches = 12;      // branches of one node; --all shows the rest
constexpr std::size_t kMostProcesses = 8;      // of a job without ranks
constexpr std::size_t kDeepestBranching = 24;  // deeper, the indentation would fill the line

/// A line of the tree: its text and its ranks.
struct Row {
  std::string prefix;
  std::vector<std::string> chain;
  std::string ranks;
};

std::string ranks_label(const model::RankSet& ranks) {
  const std::string said = ranks.ranges();
  return display_width(said) <= kWidestRanks ? said : fmt::format("{} ranks", ranks.size());
}

/// Joins a chain; if it is too long, outer frames are omitted, because the innermost ones matter
/// most.
std::string joined(const std::vector<std::string>& chain, std::size_t width) {
  std::string out = chain.back();
  std::size_t first = chain.size() - 1;
  while (first > 0) {
    const std::size_t needed =
        display_width(chain[first - 1]) + display_width(kJoin) + (first > 1 ? 4 : 0);
    if (display_width(out) + needed > width) {
      break;
    }
    --first;
    out = chain[first] + std::string(kJoin) + out;
  }
  return fit(first > 0 ? "…" + std::string(kJoin) + out : out, width);
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by kDeepestBranching
void add_rows(const std::vector<FoldedNode>& nodes, const std::string& indent, std::size_t depth,
              bool all, std::vector<Row>& rows) {
  const std::size_t shown = all ? nodes.size() : std::min(nodes.size(), kMostBranches);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == nodes.size();
    const bool top = depth == 0 && nodes.size() == 1;
    Row row{.prefix = indent + (top    ? ""
                                : last ? "└ "
                                       : "├ "),
            .chain = {},
            .ranks = ranks_label(nodes[i].ranks)};
    const FoldedNode* node = &nodes[i];
    row.chain.push_back(node->label);
    while (node->children.size() == 1 && node->children.front().ranks == node->ranks) {
      node = &node->children.front();
      row.chain.push_back(node->label);
    }
    rows.push_back(std::move(row));
    if (depth < kDeepestBranching) {
      add_rows(node->children, indent + (top ? "" : last ? "  " : "│ "), depth + 1, all, rows);
    }
  }
  if (shown < nodes.size()) {
    model::RankSet rest;
    for (std::size_t i = shown; i < nodes.size(); ++i) {
      rest = rest.united(nodes[i].ranks);
    }
    rows.push_back({.prefix = indent + "└ ",
                    .chain = {fmt::format("… {} more places: --all", nodes.size() - shown)},
                    .ranks = ranks_label(rest)});
  }
}

std::string tree(const std::vector<FoldedNode>& nodes, const TextOptions& options) {
  std::vector<Row> rows;
  add_rows(nodes, "", 0, options.all_findings, rows);
  std::size_t ranks_width = 0;
  for (const Row& row : rows) {
    ranks_width = std::max(ranks_width, display_width(row.ranks));
  }
  constexpr std::size_t kGap = 3;
  constexpr std::size_t kNarrowest = 30;
  const std::size_t room =
      std::max(options.width, kStackIndent.size() + kGap + ranks_width + kNarrowest) -
      kStackIndent.size() - kGap - ranks_width;
  std::vector<std::string> texts;
  std::size_t width = 0;
  for (const Row& row : rows) {
    const std::size_t used = std::min(display_width(row.prefix), room - kNarrowest / 2);
    texts.push_back(row.prefix + joined(row.chain, room - used));
    width = std::max(width, display_width(texts.back()));
  }
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += fmt::format("{}{}{}{}\n", kStackIndent, pad(texts[i], width), std::string(kGap, ' '),
                       rows[i].ranks);
  }
  return out;
}

/// The number of threads that were stopped for their stack, and the longest stop. Empty if the
/// capture does not contain it, or if another tool took the stacks.
std::string pauses(const model::Observation& observation) {
  constexpr std::string_view kStopped = "stopped ";
  bool told = false;
  int stopped = 0;
  double longest_ms = 0;
  for (const model::Process& process : observation.processes) {
    for (const model::Thread& thread : process.threads) {
      told = told || !(thread.capture.empty() || thread.capture.starts_with(model::kDumpedFrom));
      if (thread.capture.starts_with(kStopped)) {
        ++stopped;
        longest_ms =
            std::max(longest_ms, std::strtod(thread.capture.c_str() + kStopped.size(), nullptr));
      }
    }
  }
  if (!told) {
    return {};
  }
  if (stopped == 0) {
    return "; no thread was paused";
  }
  return fmt::format("; {} paused, {} {:.2f} ms",
                     stopped == 1 ? "one thread" : fmt::format("{} threads", stopped),
                     stopped == 1 ? "for" : "none longer than", longest_ms);
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string what_was_read(const model::Observation& observation) {
  std::size_t threads = 0;
  for (const model::Process& process : observation.processes) {
    threads += process.threads.size();
  }
  return fmt::format("{}, {}{}", counted(observation.processes.size(), "process", "processes"),
                     counted(threads, "thread", "threads"), pauses(observation));
}

std::string process_name(const model::Process& process) {
  if (!process.command.empty()) {
    std::string command;
    for (const std::string& word : process.command) {
      command += (command.empty() ? std::string(base::file_name(word)) : " " + word);
    }
    return fit(one_line(command), kWidestRanks);
  }
  return base::printable(base::file_name(process.exe));
}

/// "rank 2 (pid 77)", "dataloader-worker of rank 2 (pid 78)", "launcher (pid 70)"
std::string process_role(const model::Process& process) {
  const std::string rank = process.rank ? fmt::format("rank {}", *process.rank) : std::string();
  std::string role(model::role_name(process.role));
  if (!rank.empty()) {
    role = process.role == model::Role::kRank ? rank : role + " of " + rank;
  }
  return fmt::format("{} (pid {})", role, process.pid);
}

/// The word for a state that a person must know about; empty for asleep or running.
std::string_view state_word(char state) {
  switch (state) {
    case 'T':
      return " (stopped)";
    case 't':
      return " (stopped by a debugger)";
    case 'D':
      return " (waits for the kernel)";
    case 'Z':
      return " (has ended)";
    default:
      return "";
  }
}

/// Only the exits or log lines of the processes are known: there is nothing to list.
bool nobody_was_looked_at(const model::Observation& observation) {
  const auto& all = observation.processes;
  const bool read = std::any_of(all.begin(), all.end(), [](const model::Process& process) {
    return std::any_of(process.threads.begin(), process.threads.end(),
                       [](const model::Thread& thread) { return !thread.frames.empty(); });
  });
  const bool any_ended = std::any_of(all.begin(), all.end(), [](const model::Process& process) {
    return process.exit.has_value();
  });
  const bool nobody = std::all_of(all.begin(), all.end(),
                                  [](const model::Process& process) { return process.pid <= 0; });
  return !read && (any_ended || nobody);
}

/// One line for each process: for jobs without ranks.
std::string processes_one_by_one(const model::Observation& observation, const FileNames& names,
                                 const TextOptions& options) {
  std::string out = fmt::format("stacks of {}, outermost call first\n", what_was_read(observation));
  std::size_t shown = 0;
  for (const model::Process& process : observation.processes) {
    const model::Thread* thread = model::main_thread(process);
    if (shown == kMostProcesses && !options.all_findings) {
      return out + fmt::format("{}… {} more: --all\n", kStackIndent,
                               observation.processes.size() - shown);
    }
    const std::string who = process.pid > 0 ? fmt::format("pid {}", process.pid)
                            : process.rank  ? fmt::format("rank {}", *process.rank)
                                            : std::string("a process");
    const std::string head = fmt::format("{}{}{}  {}   ", kStackIndent, who,
                                         state_word(process.state), process_name(process));
    const std::size_t used = display_width(head);
    const std::size_t room = std::max(options.width, used + kWidestRanks) - used;
    out += head +
           (thread == nullptr ? std::string("no thread was read")
                              : joined(folded(*thread, names), room)) +
           "\n";
    ++shown;
  }
  return out;
}

}  // namespace

std::string stack_block(const diagnosis::Diagnosis& diagnosis, const FileNames& names,
                        const TextOptions& options) {
  const model::Observation* observation = model::latest(diagnosis.job);
  if (observation == nullptr || observation->processes.empty()) {
    return {};
  }
  const std::vector<FoldedNode> nodes =
      folded(diagnosis.stack_diff, names,
             diagnosis.findings.empty() ? model::RankSet() : diagnosis.findings.front().culprits);
  if (nodes.empty()) {
    return nobody_was_looked_at(*observation) ? std::string()
                                              : processes_one_by_one(*observation, names, options);
  }
  model::RankSet ranks;
  for (const FoldedNode& node : nodes) {
    ranks = ranks.united(node.ranks);
  }
  const bool part = nodes.size() > 1 || nodes.front().ranks.size() > 1;
  return fmt::format("stacks of {} ({}){}\n", counted(ranks.size(), "rank", "ranks"),
                     what_was_read(*observation), part ? ", by rank" : "") +
         tree(nodes, options);
}

std::string thread_dump(const model::JobModel& job, const FileNames& names,
                        const TextOptions& options) {
  const model::Observation* observation = model::latest(job);
  std::string out;
  if (observation == nullptr) {
    return out;
  }
  for (const model::Process& process : observation->processes) {
    const bool elsewhere = job.hosts.size() > 1 && !process.host.empty();
    const std::string who =
        process_role(process) + (elsewhere ? " on " + base::printable(process.host) : "");
    for (const model::Thread& thread : process.threads) {
      const std::string gil = thread.gil.value_or(false) ? ", holds the GIL" : "";
      const std::string number = thread.tid > 0 ? fmt::format("{} ", thread.tid) : std::string();
      out += toned(fmt::format("{}, thread {}{} ({}{})", who, number, base::printable(thread.name),
                               thread.state, gil),
                   Tone::kStrong, options.colour) +
             "\n";
      if (thread.frames.empty()) {
        out +=
            fmt::format("{}no stack: {}\n", kStackIndent,
                        thread.capture.empty() ? "not captured" : base::printable(thread.capture));
      }
      for (const model::Frame& frame : thread.frames) {
        out += fmt::format("{}{}\n", kStackIndent, frame_label(frame, names));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::viewer
