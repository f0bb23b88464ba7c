// SPDX-License-Identifier: Apache-2.0
// Two signs: a message of Open MPI, Intel MPI or MPICH, and lines of the program or of NCCL in
// which several processes call themselves rank 0 of 1. The lines alone are likely only below a
// command that starts several processes, and only if none of them has another rank.
#include "collector/detectors/evidence/singletons.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestSingletonLine = 1'024;
constexpr std::size_t kLongestQuotedSingleton = 240;
constexpr std::size_t kMostQuotedSingletons = 4;

/// What a library says when it finds no server of the launcher.
struct NoServer {
  std::string_view text;
  std::string_view meaning;
  bool of_several = false;  // it is not said to a program that was started alone on purpose
};
constexpr std::array<NoServer, 5> kNoServer = {{
    {"No PMIx server was reachable, but a ", "Open MPI found no PMIx server of the launcher", true},
    {"PMI server not found. Please set I_MPI_PMI_LIBRARY",
     "Intel MPI found no PMI server of the launcher"},
    {"OMPI was not built with SLURM", "Open MPI was built without the PMI support that srun needs",
     true},
    {"PMII_singinit: ", "MPICH found no PMI server of the launcher"},
    {"This singleton init program attempted to access",
     "MPICH found no PMI server of the launcher"},
}};

/// Words before a rank in lines of programs: "proc 0 of 1", "Rank: 0 / 1", "rank 0 nranks 1".
constexpr std::array<std::string_view, 6> kRankWords = {"rank",      "proc", "process",
                                                        "processor", "task", "global_rank"};
/// Between a rank and the size of its world.
constexpr std::array<std::string_view, 12> kBetweens = {
    "of",     "out of", "/",      "size", "world_size", "world size",
    "nranks", "from",   "nprocs", "np",   "total of",   "of total"};

struct RankOf {
  int rank = 0;
  int size = 0;
};

bool of_word_in_log(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::size_t skip(std::string_view text, std::size_t at, std::string_view chars) {
  const std::size_t end = text.find_first_not_of(chars, at);
  return end == text.npos ? text.size() : end;
}

std::optional<int> number_at(std::string_view text, std::size_t& at) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  const auto next = static_cast<std::size_t>(end - text.data());
  const bool whole = next == text.size() || (!of_word_in_log(text[next]) && text[next] != '.') ||
                     (text[next] == '.' && next + 1 == text.size());
  if (error != std::errc() || number < 0 || !whole) {
    return std::nullopt;
  }
  at = next;
  return number;
}

/// The size behind a rank: " of 1", "/1", ", world_size: 1".
std::optional<int> size_behind(std::string_view text, std::size_t at) {
  at = skip(text, at, " ,;()");
  for (const std::string_view word : kBetweens) {
    if (text.substr(at, word.size()) != word ||
        (word != "/" && at + word.size() < text.size() && of_word_in_log(text[at + word.size()]))) {
      continue;
    }
    std::size_t next = skip(text, at + word.size(), " :=");
    if (const auto size = number_at(text, next)) {
      return size;
    }
  }
  return std::nullopt;
}

/// "Hello from proc 0 of 4", in lower case.
std::optional<RankOf> rank_of_world(std::string_view line) {
  for (const std::string_view word : kRankWords) {
    for (std::size_t at = line.find(word); at != line.npos; at = line.find(word, at + 1)) {
      if (at > 0 && of_word_in_log(line[at - 1]) && line[at - 1] != '_') {
        continue;
      }
      std::size_t next = at + word.size();
      if (next < line.size() && of_word_in_log(line[next])) {
        continue;
      }
      next = skip(line, next, " :=#");
      const auto rank = number_at(line, next);
      const auto size = rank ? size_behind(line, next) : std::nullopt;
      if (size && *size > 0 && *rank < *size) {
        return RankOf{.rank = *rank, .size = *size};
      }
    }
  }
  return std::nullopt;
}

/// A launcher that starts the processes of a command line, and their number.
struct Command {
  std::string_view launcher;
  int count = 0;
};

/// "srun -n 4", "mpirun -np 4", "--ntasks=4"; a count of 0 if the line starts nothing.
Command started_by(std::string_view line) {
  const std::string words = " " + std::string(line) + " ";
  constexpr std::array<std::string_view, 5> kLaunchers = {"srun ", "mpirun ", "mpiexec ", "aprun ",
                                                          "orterun "};
  const auto launcher =
      std::find_if(kLaunchers.begin(), kLaunchers.end(), [&words](std::string_view name) {
        const std::size_t at = words.find(name);
        return at != std::string::npos && !of_word_in_log(words[at - 1]) && words[at - 1] != '.';
      });
  if (launcher == kLaunchers.end()) {
    return {};
  }
  constexpr std::array<std::string_view, 7> kCounts = {
      " -n ", " -np ", " --np ", " -n=", " --ntasks=", " --ntasks ", " -n"};
  for (const std::string_view option : kCounts) {
    if (std::size_t at = words.find(option, words.find(*launcher)); at != std::string::npos) {
      at += option.size();
      if (const auto number = number_at(words, at)) {
        return {.launcher = base::trim(*launcher), .count = *number};
      }
    }
  }
  return {};
}

/// Output below one command, up to the next.
struct Launch {
  std::string command;
  std::string launcher;
  int started = 0;
  std::size_t alone = 0;  // lines of rank 0 of 1
  bool others = false;    // a line of a larger world
  std::string line;
  std::string message;
  std::size_t messages = 0;
  std::set<std::string> firsts;  // processes that nccl-tests lists as rank 0
  const NoServer* says = nullptr;
};

/// "12098" of "#  Rank  0 Group  0 Pid  12098 on node23 device  0 [0x18] NVIDIA H100": the process
/// of rank 0 in the list of nccl-tests. One world has one.
std::string first_of_nccl_tests(std::string_view line) {
  const std::size_t rank = line.starts_with('#') ? line.find(" Rank ") : line.npos;
  const std::size_t pid = rank == line.npos ? rank : line.find(" Pid ", rank);
  if (pid == line.npos) {
    return {};
  }
  std::size_t at = skip(line, rank + 6, " ");
  const auto number = number_at(line, at);
  at = skip(line, pid + 5, " ");
  const auto process = number_at(line, at);
  return number == 0 && process ? std::to_string(*process) : std::string();
}

void read_line(std::string_view text, Launch& launch) {
  for (const NoServer& one : kNoServer) {
    if (text.find(one.text) != text.npos) {
      launch.message = launch.message.empty() ? std::string(text) : launch.message;
      launch.says = launch.says == nullptr ? &one : launch.says;
      ++launch.messages;
    }
  }
  if (const std::string pid = first_of_nccl_tests(text); !pid.empty()) {
    launch.firsts.insert(pid);
    launch.line = launch.line.empty() ? std::string(text) : launch.line;
    return;
  }
  const auto place = rank_of_world(base::lower(text));
  if (place && place->size == 1) {
    ++launch.alone;
    launch.line = launch.line.empty() ? std::string(text) : launch.line;
  } else if (place) {
    launch.others = true;
  }
}

std::vector<Launch> launches_in(const model::Log& log) {
  std::vector<Launch> out(1);
  for (const std::string_view raw : base::split(log.text, '\n')) {
    const std::string_view text =
        base::trim(model::read_log_line(raw.substr(0, kLongestSingletonLine)).text);
    if (const Command command = started_by(text); command.count > 0) {
      Launch& next = out.emplace_back();
      next.command = std::string(text);
      next.launcher = command.launcher;
      next.started = command.count;
    } else {
      read_line(text, out.back());
    }
  }
  return out;
}

bool is_alone(const Launch& launch) {
  const bool several = launch.alone > 1 || launch.messages > 1;
  const bool enough = launch.says == nullptr ? launch.alone > 1 && launch.started > 1
                                             : launch.says->of_several || several;
  return (enough && launch.started != 1 && !launch.others) ||
         (launch.started > 1 && launch.firsts.size() > 1);
}

}  // namespace

std::optional<Finding> singletons(const model::JobModel& job, std::string_view kind) {
  std::vector<Launch> alone;
  for (const model::Log& log : job.logs) {
    for (Launch& launch : launches_in(log)) {
      if (is_alone(launch)) {
        alone.push_back(std::move(launch));
      }
    }
  }
  if (alone.empty()) {
    return std::nullopt;
  }
  const auto with_message = std::find_if(alone.begin(), alone.end(),
                                         [](const Launch& one) { return !one.message.empty(); });
  const Launch& first = with_message == alone.end() ? alone.front() : *with_message;
  const int count = first.started > 1 ? first.started : static_cast<int>(first.alone);
  const bool of_nccl_tests = first.firsts.size() > 1;
  const std::string& launcher = first.launcher;
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kLikely;
  finding.summary =
      fmt::format("{} started alone, each as rank 0 {}, instead of one world{}",
                  count > 1 ? fmt::format("{} processes{}", count,
                                          launcher.empty() ? std::string() : " of " + launcher)
                            : std::string("the processes"),
                  of_nccl_tests ? "of its own nccl-tests" : "of 1",
                  first.says == nullptr ? std::string() : fmt::format(": {}", first.says->meaning));
  for (const Launch& one : alone) {
    for (const std::string* text : {&one.message, &one.command, &one.line}) {
      if (!text->empty() && finding.evidence.size() < kMostQuotedSingletons) {
        finding.evidence.push_back(
            {.rank = {},
             .text = "log: " + base::elide(base::printable(*text), kLongestQuotedSingleton)});
      }
    }
  }
  finding.fix =
      of_nccl_tests ? "Build nccl-tests with MPI (`make MPI=1 MPI_HOME=…`): without it, each "
                      "process that the "
                      "launcher starts is a test of its own."
      : launcher == "mpirun" || launcher == "mpiexec" || launcher == "orterun"
          ? "Start the program with the mpirun of the MPI that it is linked with (`which mpirun`, "
            "`ldd PROGRAM`): a different MPI does not find its server."
          : "Start it with `srun --mpi=pmix` (`srun --mpi=list` shows what Slurm has; Intel MPI "
            "needs I_MPI_PMI_LIBRARY), or with the mpirun of the MPI that it is linked with.";
  return finding;
}

}  // namespace ddpdoctor::detectors
