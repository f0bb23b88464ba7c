// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/file_readers.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

// One thread in a read may read a pipe; several threads at one line read the files of a list.
constexpr std::size_t kFewestReaders = 2;

/// The readers of one process at one line.
struct Readers {
  const model::Process* process = nullptr;
  const model::Frame* line = nullptr;
  graph::Standing main;  // waits for them
  std::vector<const model::Thread*> threads;
};

bool of_native_code(const model::Frame& frame) {
  return frame.language == model::Language::kNative;
}

bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// `read` also reads pipes and sockets, and these functions around it only files; `pread` needs a
/// position, which only files have. CPython 3.8 to 3.14, glibc, libstdc++.
bool reads_a_file(const model::Thread& thread) {
  constexpr std::array<std::string_view, 5> kRead = {"read", "__read", "__libc_read",
                                                     "__GI___libc_read", "__read_nocancel"};
  constexpr std::array<std::string_view, 7> kPread = {
      "pread", "pread64", "__pread64", "__libc_pread", "__libc_pread64", "preadv", "preadv64"};
  constexpr std::array<std::string_view, 5> kOfFiles = {
      "_io_FileIO_", "_bufferedreader_", "_io__Buffered_", "basic_filebuf", "_IO_file_"};
  const auto& frames = thread.frames;
  if (frames.empty() || !of_native_code(frames.front()) || thread.state == 'R') {
    return false;
  }
  if (is_among(frames.front().function, kPread)) {
    return true;
  }
  const auto python = std::find_if_not(frames.begin(), frames.end(), of_native_code);
  return is_among(frames.front().function, kRead) &&
         std::any_of(frames.begin(), python, [&](const model::Frame& frame) {
           return base::contains_any(frame.function, kOfFiles);
         });
}

/// The reads of pipes of the standard library and of torch's compiler.
bool reads_a_pipe(const model::Thread& thread) {
  constexpr std::array<std::string_view, 6> kFiles = {
      "multiprocessing/connection.py",  "subprocess.py", "asyncio/", "socket.py", "selectors.py",
      "torch/_inductor/compile_worker/"};
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&](const model::Frame& frame) {
    return !of_native_code(frame) && base::contains_any(frame.file, kFiles);
  });
}

bool waits_for_readers(const graph::Standing& main) {
  using enum graph::Activity;
  return main.activity == kQueue || main.activity == kJoin || main.activity == kLock;
}

std::vector<Readers> readers_in(const graph::Examination& examination,
                                const model::Process& process) {
  std::vector<Readers> out;
  const model::Thread* main = model::main_thread(process);
  for (const model::Thread& thread : process.threads) {
    const model::Frame* line = &thread != main && reads_a_file(thread) && !reads_a_pipe(thread)
                                   ? model::user_frame(thread)
                                   : nullptr;
    if (line == nullptr || graph::ran_between_looks(examination.job, process, thread)) {
      continue;
    }
    auto known = std::find_if(out.begin(), out.end(), [line](const Readers& one) {
      return one.line->file == line->file && one.line->line == line->line;
    });
    if (known == out.end()) {
      out.push_back({.process = &process, .line = line, .main = {}, .threads = {}});
      known = out.end() - 1;
    }
    known->threads.push_back(&thread);
  }
  std::erase_if(out, [](const Readers& one) { return one.threads.size() < kFewestReaders; });
  if (main == nullptr || out.empty()) {
    return {};
  }
  const graph::Standing standing = graph::standing_of(examination.job, process, *main);
  if (!waits_for_readers(standing)) {
    return {};
  }
  for (Readers& one : out) {
    one.main = standing;
  }
  return out;
}

std::string whose_threads(const model::RankSet& ranks, const std::vector<Readers>& all) {
  if (!ranks.empty()) {
    return said(ranks);
  }
  return all.size() == 1 && all.front().process->pid != 0
             ? fmt::format("process {}", all.front().process->pid)
             : fmt::format("{} processes", all.size());
}

Finding finding_of_readers(const graph::Examination& examination, std::string_view kind,
                           const std::vector<Readers>& all) {
  Finding finding;
  finding.kind = std::string(kind);
  const auto sure = stuck(examination);
  finding.confidence = sure.value_or(Confidence::kPossible);
  std::size_t threads = 0;
  for (const Readers& one : all) {
    threads += one.threads.size();
    if (one.process->rank) {
      finding.culprits.insert(*one.process->rank);
    }
  }
  const bool many = all.size() > 1;
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  const model::CallSite site = model::call_site(*all.front().line);
  const std::string whose = whose_threads(finding.culprits, all);
  finding.summary = fmt::format(
      "{} {} blocked in reads of files in {} threads ({}); the main {} for them", whose,
      many ? "are" : "is", threads, place(site), many ? "threads wait" : "thread waits");
  finding.locations.push_back(
      location(site, finding.culprits, fmt::format("{} threads read files here", threads)));
  if (all.front().main.user.known()) {
    finding.locations.push_back(
        location(all.front().main.user, finding.culprits,
                 many ? "the main threads wait here" : "the main thread waits here"));
  }
  for (const Readers& one : all) {
    finding.evidence.push_back(
        {.rank = one.process->rank,
         .text = fmt::format("process {}: {} threads are in {}(), called at {}", one.process->pid,
                             one.threads.size(), one.threads.front()->frames.front().function,
                             line_of(site))});
  }
  if (model::previous(examination.job) == nullptr) {
    finding.evidence.push_back(
        {.rank = {}, .text = "one dump does not show whether the reads progress"});
  }
  finding.fix =
      "Read one of these files with `dd if=FILE of=/dev/null bs=16M` on that node: it shows "
      "whether the storage answers. Read with fewer threads, or from local storage.";
  return finding;
}

}  // namespace

Findings findings_of_file_readers(const graph::Examination& examination, std::string_view kind) {
  const model::Observation* now = model::latest(examination.job);
  if (now == nullptr || !may_hang(examination) || examination.job.ended) {
    return {};
  }
  std::map<std::pair<std::string, int>, std::vector<Readers>> by_line;
  for (const model::Process& process : now->processes) {
    for (Readers& one : readers_in(examination, process)) {
      by_line[{one.line->file, one.line->line}].push_back(std::move(one));
    }
  }
  Findings out;
  for (const auto& [line, all] : by_line) {
    out.push_back(finding_of_readers(examination, kind, all));
  }
  return out;
}

}  // namespace ddpdoctor::detectors
