// SPDX-License-Identifier: Apache-2.0
// Processes, threads and frames of ddpdoctor.capture/1 → values.
#include <algorithm>
#include <charconv>
#include <utility>

#include "collector/imports/capture/parts.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using model::Process;
using model::Thread;

constexpr std::size_t kMaxItems = 32;  // of a loop over names; more are data

/// A process with more ranks than a host has GPUs is not plausible.
constexpr std::size_t kMaxRanksOfProcess = 64;

char letter(const Cursor& in, std::string_view key) {
  const Cursor field = in[key];
  const std::string text = field.text().value_or("");
  return text.empty() ? '?' : text.front();
}

pid_t number(const Cursor& in, std::string_view key) {
  const Cursor field = in[key];
  return static_cast<pid_t>(field.whole(0, kMaxPid).value_or(0));
}

int line_number(const Cursor& in, std::string_view key) {
  const Cursor field = in[key];
  return static_cast<int>(field.whole(0, kMaxLine).value_or(0));
}

model::Language read_language(const Cursor& in, const model::Frame& frame) {
  const Cursor field = in["language"];
  const auto name = field.text();
  if (!name) {  // a native frame names its module, a Python frame its line
    return frame.module.empty() && !frame.file.empty() ? model::Language::kPython
                                                       : model::Language::kNative;
  }
  if (*name != "python" && *name != "native") {
    field.refuse("\"python\" or \"native\"");
  }
  return *name == "python" ? model::Language::kPython : model::Language::kNative;
}

/// [["x", "1"]] keeps the order; {"x": "1"} is easier to write.
void read_locals(const Cursor& in, model::Frame& out) {
  if (in.is(PlainValue::Kind::kList)) {
    in.each([&out](const Cursor& pair) {
      std::vector<std::string> words = pair.texts();
      if (words.size() != 2) {
        pair.refuse("a name and a value");
        return;
      }
      out.locals.emplace_back(std::move(words[0]), std::move(words[1]));
    });
    return;
  }
  in.each_field([&out](const std::string& name, const Cursor& value) {
    if (auto shown = value.name()) {
      out.locals.emplace_back(name, std::move(*shown));
    }
  });
}

model::Iteration read_loop(const Cursor& in) {
  model::Iteration out;
  out.over = text(in, "over");
  const Cursor done = in["done"];
  out.done = done.whole(0, kMaxNumber);
  const Cursor left = in["left"];
  out.left = left.whole(0, kMaxNumber);
  const Cursor loose = in["loose"];
  out.loose = loose.flag().value_or(false);
  const Cursor index = in["index"];
  out.index = index.whole(0, kMaxNumber);
  const Cursor items = in["items"];
  out.items = items.present() ? items.texts() : std::vector<std::string>();
  if (out.items.size() > kMaxItems) {
    out.items.clear();
  }
  return out;
}

model::Frame read_frame(const Cursor& in) {
  model::Frame out;
  out.function = text(in, "function");
  out.file = text(in, "file");
  out.line = line_number(in, "line");
  out.column = line_number(in, "column");
  out.end_line = line_number(in, "end_line");
  out.end_column = line_number(in, "end_column");
  out.module = text(in, "module");
  const Cursor address = in["address"];
  out.address = static_cast<std::uint64_t>(address.whole(0, kMaxNumber).value_or(0));
  const Cursor inferred = in["inferred"];
  out.inferred = inferred.flag().value_or(false);
  out.language = read_language(in, out);
  const Cursor locals = in["locals"];
  read_locals(locals, out);
  const Cursor loops = in["loops"];
  loops.each([&out](const Cursor& loop) { out.loops.push_back(read_loop(loop)); });
  return out;
}

std::optional<model::WaitsOn> read_waits_on(const Cursor& in) {
  if (!in.present()) {
    return std::nullopt;
  }
  const Cursor limit = in["limit"];
  const std::optional<double> seconds = limit.number();
  return model::WaitsOn{.kind = text(in, "kind"),
                        .target = text(in, "target"),
                        .detail = text(in, "detail"),
                        .limit = seconds && *seconds >= 0 ? seconds : std::nullopt};
}

Thread read_thread(const Cursor& in) {
  Thread out;
  out.tid = number(in, "tid");
  out.name = text(in, "name");
  out.state = letter(in, "state");
  out.wchan = text(in, "wchan");
  const Cursor gil = in["gil"];
  out.gil = gil.flag();
  const Cursor waits_on = in["waits_on"];
  out.waits_on = read_waits_on(waits_on);
  const Cursor frames = in["frames"];
  frames.each([&out](const Cursor& frame) { out.frames.push_back(read_frame(frame)); });
  const Cursor run_count = in["run_count"];
  if (const auto count = run_count.whole(0, kMaxNumber)) {
    out.run_count = static_cast<std::uint64_t>(*count);
  }
  out.capture = text(in, "capture");
  return out;
}

std::optional<model::Exit> read_exit(const Cursor& in) {
  if (!in.present()) {
    return std::nullopt;
  }
  constexpr std::int64_t kMaxSignal = 128;
  model::Exit out;
  const Cursor status = in["status"];
  if (const auto value = status.whole(INT32_MIN, INT32_MAX)) {
    out.status = static_cast<int>(*value);
  }
  const Cursor signal = in["signal"];
  if (const auto value = signal.whole(0, kMaxSignal)) {
    out.signal = static_cast<int>(*value);
  }
  return out;
}

bool runs_worker_loop(const Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const Thread& thread) {
    return model::has_python_frame(thread, "_worker_loop", "data/_utils/worker.py");
  });
}

/// An unknown role is an ordinary process, because formats grow. Without a role, the stack
/// identifies a DataLoader worker; otherwise a process with a rank is a rank.
model::Role read_role(const Cursor& in, const Process& process, bool has_rank) {
  const Cursor field = in["role"];
  const auto name = field.text();
  if (!name && runs_worker_loop(process)) {
    return model::Role::kDataLoaderWorker;
  }
  if (!name) {
    return has_rank ? model::Role::kRank : model::Role::kOther;
  }
  return model::role_of(*name).value_or(model::Role::kOther);
}

std::vector<std::optional<model::Rank>> read_ranks(const Cursor& in) {
  const Cursor rank = in["rank"];
  const Cursor ranks = in["ranks"];
  std::vector<std::optional<model::Rank>> out;
  if (const auto several = ranks.wholes(0, kMaxRank)) {
    if (several->size() > kMaxRanksOfProcess) {
      ranks.refuse("a list of at most 64 ranks");
      return {std::nullopt};
    }
    for (const std::int64_t one : *several) {
      out.emplace_back(static_cast<model::Rank>(one));
    }
  }
  if (out.empty()) {
    out.push_back(read_rank(rank));
  }
  return out;
}

/// The RANK of the environment, for a process that gives its rank nowhere else. Workers inherit
/// RANK and a launcher may have that of another job, so only processes that may be ranks are
/// considered.
std::optional<model::Rank> rank_of_environment(const Cursor& in, const Process& process) {
  const Cursor field = in["role"];
  const auto role = field.text();
  const auto told = process.environment.find("RANK");
  if (told == process.environment.end() || (role && *role != "rank") || runs_worker_loop(process)) {
    return std::nullopt;
  }
  model::Rank rank = -1;
  const std::string& text = told->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && rank >= 0 && rank <= kMaxRank ? std::optional(rank) : std::nullopt;
}

/// Data of the process that applies only to its main thread.
void complete_main_thread(Process& process) {
  if (process.threads.empty()) {
    return;
  }
  Thread& main = process.threads.front();
  main.state = main.state == '?' ? process.state : main.state;
  main.wchan = main.wchan.empty() ? process.wchan : main.wchan;
}

void read_threads(const Cursor& in, Process& out) {
  const Cursor threads = in["threads"];
  threads.each([&out](const Cursor& thread) { out.threads.push_back(read_thread(thread)); });
  std::stable_partition(out.threads.begin(), out.threads.end(),
                        [&out](const Thread& thread) { return thread.tid == out.pid; });
}

}  // namespace

std::optional<model::Rank> read_rank(const Cursor& in) {
  const auto rank = in.whole(0, kMaxRank);
  return rank ? std::optional(static_cast<model::Rank>(*rank)) : std::nullopt;
}

model::CallSite read_call_site(const Cursor& in) {
  if (!in.present()) {
    return {};
  }
  model::CallSite site{
      .file = text(in, "file"), .line = line_number(in, "line"), .function = text(in, "function")};
  // A half-known line would differ from every complete one; absent means unknown.
  return site.file.empty() || site.line == 0 ? model::CallSite{} : site;
}

std::vector<Process> read_processes(const Cursor& in) {
  Process out;
  out.host = text(in, "host");
  out.pid = number(in, "pid");
  out.ppid = number(in, "ppid");
  const Cursor command = in["command"];
  out.command = command.texts();
  out.exe = text(in, "exe");
  const Cursor start_time = in["start_time"];
  out.start_time = start_time.number();
  out.state = letter(in, "state");
  out.wchan = text(in, "wchan");
  const Cursor environment = in["env"];
  environment.each_field([&out](const std::string& name, const Cursor& value) {
    if (auto shown = value.name()) {
      out.environment[name] = std::move(*shown);
    }
  });
  const Cursor exit = in["exit"];
  out.exit = read_exit(exit);
  const Cursor python_version = in["python_version"];
  out.python_version = python_version.text().value_or("");
  read_threads(in, out);
  const Cursor problems = in["problems"];
  out.problems = problems.texts();
  const Cursor cpu_seconds = in["cpu_seconds"];
  out.cpu_seconds = cpu_seconds.number();
  const Cursor io_bytes = in["io_bytes"];
  out.io_bytes = io_bytes.whole(0, kMaxNumber);
  complete_main_thread(out);
  auto ranks = read_ranks(in);
  if (!ranks.front()) {
    ranks.front() = rank_of_environment(in, out);
  }
  out.role = read_role(in, out, ranks.front().has_value());
  std::size_t entries = 1 + out.threads.size();
  for (const Thread& thread : out.threads) {
    entries += thread.frames.size();
  }
  if (!in.charge((ranks.size() - 1) * entries)) {
    return {};
  }
  std::vector<Process> all(ranks.size() - 1, out);
  all.push_back(std::move(out));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    all[i].rank = ranks[i];
  }
  return all;
}

}  // namespace ddpdoctor::imports
