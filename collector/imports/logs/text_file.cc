// SPDX-License-Identifier: Apache-2.0
// Reads the lines of each rank separately, so that a dump is complete even if others wrote between
// its lines.
#include "collector/imports/logs/text_file.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/flight_recorder/analysis_text.h"
#include "collector/imports/logs/c10d_text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/gpu_use.h"
#include "collector/imports/logs/horovod_text.h"
#include "collector/imports/logs/hung_task.h"
#include "collector/imports/logs/labels.h"
#include "collector/imports/logs/launcher_text.h"
#include "collector/imports/logs/nccl_calls.h"
#include "collector/imports/logs/nccl_setup.h"
#include "collector/imports/logs/nccl_text.h"
#include "collector/imports/logs/prepared_text.h"
#include "collector/imports/logs/progress_bars.h"
#include "collector/imports/logs/roll_calls.h"
#include "collector/imports/logs/server_text.h"
#include "collector/imports/logs/shortened_log.h"
#include "collector/imports/logs/timed_out.h"
#include "collector/imports/logs/told_world.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/logs/work_lines.h"
#include "collector/imports/nccl_ras.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/headings.h"
#include "collector/imports/stack_dumps/interrupted.h"
#include "collector/imports/stack_dumps/kernel_stacks.h"
#include "collector/imports/stack_dumps/listed_processes.h"
#include "collector/imports/stack_dumps/ranks_of_pids.h"
#include "collector/imports/stack_dumps/shown_sources.h"
#include "collector/imports/stack_dumps/stack_readers.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/secrets.h"
#include "collector/model/told_by_logs.h"
#include "collector/model/torch_evidence.h"

namespace ddpdoctor::imports {
namespace {

// Bytes of a file; of a larger one, the end is read.
constexpr std::size_t kMostBytes = std::size_t{256} << 20U;
constexpr std::size_t kLongestHeading = 16;
constexpr std::size_t kNearHeading = 3;  // lines between a heading with a rank and its dump

struct Tool {
  std::string_view name;
  bool (*read)(Lines& lines, std::vector<StackDump>& out);
  bool may_skip = false;  // it reads lines of which it makes no dump, as no thread has a frame
};

constexpr std::array<Tool, 11> kTools = {{{"py-spy", read_py_spy},
                                          {"pystack", read_pystack},
                                          {"gdb", read_gdb, true},
                                          {"lldb", read_lldb, true},
                                          {"sample", read_sample},
                                          {"eu-stack", read_eu_stack},
                                          {"faulthandler", read_faulthandler},
                                          {"austin", read_austin},
                                          {"traceback.print_stack", read_printed_stacks},
                                          {"faulthandler", read_unheaded_faulthandler, true},
                                          {"py-spy", read_unheaded_py_spy, true}}};

/// The lines of one rank, or those without a rank.
struct Stream {
  std::vector<std::string_view> lines;
  std::vector<std::size_t> numbers;  // number of each line in the file
};

/// Results found while the text is read.
struct Finding {
  std::vector<StackDump> dumps;
  std::set<std::string_view> tools;
  std::vector<bool> taken;  // by line of the file
};

/// "Rank 3:" alone above a dump whose lines have no rank.
bool is_heading(const std::vector<std::string_view>& lines, std::size_t at) {
  const auto read = [&lines](std::size_t i) {
    return model::read_log_line(lines[i].substr(0, kLongestLogLine));
  };
  const bool bare = at + 1 < lines.size() && lines[at].size() <= kLongestHeading &&
                    !lines[at].starts_with('[') && read(at).rank && read(at).text.empty();
  return bare && !read(at + 1).rank;
}

std::map<std::optional<model::Rank>, Stream> streams_of(
    const std::vector<std::string_view>& lines) {
  std::map<std::optional<model::Rank>, Stream> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    model::LogLine line = model::read_log_line(lines[i].substr(0, kLongestLogLine));
    line = is_heading(lines, i) ? model::LogLine{.text = lines[i], .rank = {}, .time = {}} : line;
    Stream& stream = out[line.rank];
    // Text copied from a terminal has trailing blanks.
    stream.lines.push_back(line.text.substr(0, line.text.find_last_not_of(" \t\r") + 1));
    stream.numbers.push_back(i);
  }
  return out;
}

/// The processes of a dump, by a line shortly above it.
DumpHeading heading_above(const Stream& stream, std::size_t at, const Finding& finding) {
  for (std::size_t back = 1; back <= kNearHeading && back <= at; ++back) {
    if (finding.taken[stream.numbers[at - back]]) {
      break;
    }
    if (auto heading = heading_of(stream.lines[at - back]); !heading.empty()) {
      return heading;
    }
  }
  return {};
}

void read_dumps(const Stream& stream, std::optional<model::Rank> rank, Finding& finding) {
  Lines lines(stream.lines);
  while (!lines.done()) {
    const std::size_t start = lines.at();
    const std::size_t before = finding.dumps.size();
    const auto* const tool = std::find_if(kTools.begin(), kTools.end(), [&](const Tool& one) {
      return one.read(lines, finding.dumps);
    });
    if (tool == kTools.end()) {
      lines.take();
      continue;
    }
    if (tool->may_skip && finding.dumps.size() == before) {
      if (lines.at() == start) {
        lines.take();
      }
      continue;
    }
    finding.tools.insert(tool->name);
    const DumpHeading heading =
        rank ? DumpHeading{.ranks = {*rank}, .places = {}} : heading_above(stream, start, finding);
    for (std::size_t i = start; i < lines.at(); ++i) {
      finding.taken[stream.numbers[i]] = true;
    }
    give_to(heading, before, finding.dumps);
    if (lines.at() == start) {
      lines.take();
    }
  }
}

/// The first line in which the watchdog of a rank gives up, and that rank.
struct GaveUp {
  std::size_t line = 0;
  model::Rank rank = 0;
};

std::optional<GaveUp> first_to_give_up(
    const std::map<std::optional<model::Rank>, Stream>& streams) {
  std::optional<GaveUp> out;
  for (const auto& [rank, stream] : streams) {
    const auto found = std::find_if(stream.lines.begin(), stream.lines.end(), [](auto line) {
      return line.find("Watchdog caught collective operation timeout: Work") != line.npos;
    });
    const auto at = static_cast<std::size_t>(found - stream.lines.begin());
    if (rank && found != stream.lines.end() && (!out || stream.numbers[at] < out->line)) {
      out = GaveUp{.line = stream.numbers[at], .rank = *rank};
    }
  }
  return out;
}

/// Adds the stacks of ranks whose last traceback ended in a wait, if no tool dumped their stack.
/// Returns the ranks that raised; `failed` gets those whose last exception was their own.
std::map<model::Rank, bool> add_timed_out(
    const std::map<std::optional<model::Rank>, Stream>& streams, const std::string& path,
    Finding& finding, model::RankSet& failed) {
  std::map<model::Rank, bool> raised;
  std::vector<StackDump> stacks;
  bool timed_out = false;
  const auto gave_up = first_to_give_up(streams);
  for (const auto& [named, stream] : streams) {
    const auto rank = named ? named : rank_in_path(path, {});
    const bool dumped =
        std::any_of(finding.dumps.begin(), finding.dumps.end(),
                    [&rank](const StackDump& dump) { return dump.process.rank == rank; });
    if (!rank || dumped) {
      continue;
    }
    raised[*rank] = std::any_of(stream.lines.begin(), stream.lines.end(), [](auto line) {
      return line.find("Traceback (most recent call last)") != line.npos;
    });
    for (const std::string_view line : stream.lines) {
      if (const auto awaited = awaited_rank(line)) {
        raised.try_emplace(*awaited, false);
      }
    }
    if (auto last = last_stack(stream.lines)) {
      last->dump.process.rank = rank;
      // The watchdog of another rank had ended its process: this one waited until then.
      const bool waited =
          gave_up && gave_up->rank != *rank && gave_up->line < stream.numbers[last->heading];
      timed_out = timed_out || last->timed_out || waited;
      stacks.push_back(std::move(last->dump));
    } else if (raised[*rank]) {
      failed.insert(*rank);
    }
  }
  if (timed_out) {  // a rank that only lost a connection reports another's failure
    std::move(stacks.begin(), stacks.end(), std::back_inserter(finding.dumps));
    finding.tools.insert(kTimedOut);
  }
  return raised;
}

/// Adds the stacks of processes that an interrupt ended, if no tool dumped their stack.
void add_interrupted(const std::map<std::optional<model::Rank>, Stream>& streams,
                     Finding& finding) {
  std::vector<StackDump> stacks;
  for (const auto& [rank, stream] : streams) {
    const bool dumped = std::any_of(
        finding.dumps.begin(), finding.dumps.end(),
        [&rank = rank](const StackDump& dump) { return !rank || dump.process.rank == rank; });
    auto found = dumped ? std::vector<StackDump>() : interrupted_stacks(stream.lines);
    if (rank && !found.empty()) {
      found.resize(1);  // a rank is interrupted again while it exits
      found.front().process.rank = rank;
      std::erase_if(stacks, [](const StackDump& dump) { return !dump.process.rank; });
    }
    std::move(found.begin(), found.end(), std::back_inserter(stacks));
  }
  if (!stacks.empty()) {
    std::move(stacks.begin(), stacks.end(), std::back_inserter(finding.dumps));
    finding.tools.insert(model::kOfInterrupt);
  }
}

/// Lines that no reader used; empty if they are only rules and blanks.
std::string rest_of(const std::vector<std::string_view>& lines, const Finding& finding) {
  std::string out;
  bool says = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!finding.taken[i]) {
      out += lines[i];
      out += '\n';
      says = says || lines[i].find_first_not_of("-=*# \t\r") != std::string_view::npos;
    }
  }
  return says ? out : std::string();
}

/// Machines that the prefixes of a log name, else the one in its path.
void add_hosts(const Labels& labels, const std::string& path, model::JobModel& job) {
  std::set<std::string> hosts(labels.hosts.begin(), labels.hosts.end());
  const std::string of_path = host_in_path(path);
  const bool machine =
      of_path.starts_with("node") || of_path.starts_with("host") || of_path.starts_with("machine");
  if (hosts.empty() && machine && !job.logs.empty()) {
    hosts.insert(of_path);
  }
  for (const std::string& host : hosts) {
    const std::string name = base::elide(base::printable(host), 256);
    if (std::find(job.hosts.begin(), job.hosts.end(), name) == job.hosts.end()) {
      job.hosts.push_back(name);
    }
  }
}

std::string tool_names(const Finding& finding) {
  std::string out;
  for (const std::string_view tool : finding.tools) {
    out += out.empty() ? "" : ", ";
    out += tool;
  }
  return out;
}

}  // namespace

base::Result<model::JobModel> read_text(std::string_view bytes, const std::string& path) {
  const bool cut = bytes.size() > kMostBytes;
  const PreparedText prepared(bytes.substr(cut ? bytes.size() - kMostBytes : 0));
  const auto lines = base::split(prepared.text(), '\n');
  Finding finding;
  finding.taken.resize(lines.size());
  const auto streams = streams_of(lines);
  for (const auto& [rank, stream] : streams) {
    read_dumps(stream, rank, finding);
  }
  model::RankSet failed;
  auto raised = add_timed_out(streams, path, finding, failed);
  if (prepared.tracebacks() && finding.tools.contains(kTimedOut)) {
    add_absent(prepared.tracebacks()->members, raised);
  }
  add_interrupted(streams, finding);
  give_ranks_of_pids(lines, finding.dumps);
  const bool ranks_of_path =
      std::none_of(finding.dumps.begin(), finding.dumps.end(),
                   [](const StackDump& dump) { return dump.process.rank.has_value(); });
  model::JobModel job = finding.dumps.empty()
                            ? model::JobModel()
                            : job_of_dumps(std::move(finding.dumps), path, tool_names(finding));
  const bool only_last = finding.tools.size() == 1 && finding.tools.contains(kTimedOut);
  read_shown_sources(lines, job);
  read_kernel_stacks(lines, job);
  note_rows(process_rows(lines), job);
  const std::size_t seen_facts = job.facts.size();
  read_gpu_use(lines, job);
  const std::size_t dumped_calls = job.collectives.size();
  std::string rest = rest_of(lines, finding);
  Told told = Told::kNothing;
  if (!rest.empty()) {
    const auto agent = sole_rank_of_agent(rest, job);
    const auto of_path = rank_in_path(path, {});
    const auto rank = agent ? agent : of_path;  // "worker-0" of a pod counts nodes
    told = read_c10d_text(rest, rank, job);
    job.ended = job.ended || (told == Told::kTimeouts && only_last);
    read_roll_calls(rest, job);
    read_told_world(rest, job);
    read_horovod_text(rest, job);
    read_analysis_text(rest, job);
    for (const model::Rank ended : read_torchrun_text(rest, job)) {
      raised.try_emplace(ended, false);
    }
    read_launcher_text(rest, job);
    read_server_text(rest, job);
    read_ras_text(rest, job);
    read_fabric_text(rest, job);
    read_hung_tasks(rest, job);
    read_nccl_text(rest, job);
    read_nccl_setup(rest, job);
    read_nccl_calls(rest, job);
    read_progress_bars(prepared.named(), job);
    read_work_lines(rest, job);
    job.coverage.observed.push_back(fmt::format("{}{}", model::kReadAsLog, path));
    job.logs.push_back({.rank = rank, .text = model::without_secrets(shortened(std::move(rest)))});
  }
  settle_watchdog_aborts(ranks_of_path, job);
  // Otherwise a rank that only writes to the log may also have made that call.
  if (told != Told::kMismatch) {
    settle_timed_out(raised, failed, job);
  }
  if (job.collectives.size() > dumped_calls) {
    const auto told_calls = static_cast<std::int64_t>(job.collectives.size() - dumped_calls);
    job.facts.push_back({.rank = {},
                         .pid = {},
                         .kind = std::string(model::kCallsOfLog),
                         .fields = {{"count", told_calls}}});
  }
  std::for_each(job.facts.begin() + static_cast<std::ptrdiff_t>(seen_facts), job.facts.end(),
                [](model::Fact& fact) { fact.told = true; });
  add_hosts(prepared.labels(), path, job);
  for (const Labels* const one : {&prepared.labels(), &prepared.actors()}) {
    if (!one->warning.empty()) {
      job.coverage.warnings.push_back(one->warning);
    }
  }
  if (cut) {
    job.coverage.warnings.push_back(fmt::format("of {} only the last {} were read", path,
                                                base::bytes(static_cast<double>(kMostBytes))));
  }
  model::complete_groups(job);
  return job;
}

base::Result<model::JobModel> read_py_spy_dump(std::string_view bytes, const std::string& path) {
  return job_of_dumps(TRY(read_py_spy_json(bytes, path)), path, "py-spy");
}

}  // namespace ddpdoctor::imports
