// SPDX-License-Identifier: Apache-2.0
// Slurm: "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7123.0. Some of your processes
// may have been killed by the cgroup out-of-memory handler.", "slurmstepd: error: *** STEP 7123.0
// ON node7 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS
// ***". Kubernetes: "Reason: OOMKilled" below "Name: trainer-1" of describe, a row "trainer-1  0/1
// OOMKilled" of get, "reason: Evicted".
#include "collector/detectors/evidence/ended_outside.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestQuotedEnd = 240;
constexpr std::size_t kLongestWhose = 64;

enum class Outside { kMemory, kEvicted, kNode, kPreempted, kTime };  // first is worst

struct EndWords {
  std::string_view text;
  std::string_view also;  // before it on the line
  Outside what;
};

constexpr std::array<EndWords, 14> kEndWords = {{
    {"oom-kill event", "slurm", Outside::kMemory},
    {"oom_kill event", "slurm", Outside::kMemory},
    {"OOM Killed", "slurm", Outside::kMemory},
    {"memory limit", "slurmstepd: error: Exceeded ", Outside::kMemory},
    {"exceeded memory limit", "slurm", Outside::kMemory},
    {"OOMKilled", "eason", Outside::kMemory},
    {"OOMKilled", "/", Outside::kMemory},
    {"\"OOMKilled\": true", "", Outside::kMemory},
    {"Evicted", "eason", Outside::kEvicted},
    {"Evicted", "/", Outside::kEvicted},
    {"DUE TO NODE FAILURE", "CANCELLED", Outside::kNode},
    {"srun: error: Node failure on ", "", Outside::kNode},
    {"DUE TO PREEMPTION", "CANCELLED", Outside::kPreempted},
    {"DUE TO TIME LIMIT", "CANCELLED", Outside::kTime},
}};

struct ToldEnd {
  Outside what = Outside::kTime;
  std::string of;    // "Slurm step 7123.0", "pod trainer-1"; empty if unknown
  std::string node;  // where it was, or the node that failed
  std::string line;
};

/// The word after a mark: digits, letters, '.', '-', '_' and '+'.
std::string word_after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == line.npos) {
    return {};
  }
  const std::string_view rest = line.substr(at + mark.size(), kLongestWhose);
  const auto end = std::find_if(rest.begin(), rest.end(), [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_' && c != '+';
  });
  std::string_view word = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  word = word.substr(0, word.find_last_not_of('.') + 1);
  return base::printable(word);
}

std::string slurm_name(std::string_view line) {
  for (const std::string_view mark : {"StepId=", " STEP ", " step "}) {
    if (const std::string id = word_after(line, mark);
        !id.empty() && std::isdigit(static_cast<unsigned char>(id.front())) != 0) {
      return "Slurm step " + id;
    }
  }
  const std::string job = word_after(line, " JOB ");
  return job.empty() || std::isdigit(static_cast<unsigned char>(job.front())) == 0
             ? std::string("the Slurm job")
             : "Slurm job " + job;
}

/// "trainer-1   0/1   OOMKilled   0   5m": a row of `kubectl get pods`.
bool is_row_of_pods(std::string_view line) {
  const std::size_t slash = line.find('/');
  return slash != line.npos && slash > 0 && slash + 1 < line.size() &&
         std::isdigit(static_cast<unsigned char>(line[slash - 1])) != 0 &&
         std::isdigit(static_cast<unsigned char>(line[slash + 1])) != 0;
}

/// The pod of a description is named above.
class EndsReading {
 public:
  void read(std::string_view raw) {
    const std::string_view line = model::read_log_line(raw.substr(0, 4096)).text;
    const std::string_view text = base::trim(line);
    if (text.starts_with("Name: ") && line.starts_with("Name:")) {  // not of a container
      pod_ = base::printable(base::trim(text.substr(5)).substr(0, kLongestWhose));
    }
    const auto* const found =
        std::find_if(kEndWords.begin(), kEndWords.end(), [line](const EndWords& words) {
          const std::size_t also = line.find(words.also);
          return also != line.npos && line.find(words.text, also) != line.npos;
        });
    if (found == kEndWords.end() || (found->also == "/" && !is_row_of_pods(text))) {
      return;
    }
    ToldEnd end{.what = found->what, .of = {}, .node = {}, .line = {}};
    if (base::contains(line, "slurm") || base::contains(line, "CANCELLED")) {
      end.of = slurm_name(line);
      end.node = word_after(line, " ON ");
    } else if (found->also == "/") {
      end.of = "pod " + base::printable(text.substr(0, std::min(text.find(' '), kLongestWhose)));
    } else if (!pod_.empty()) {
      end.of = "pod " + pod_;
    }
    end.node = end.node.empty() ? word_after(line, "Node failure on ") : end.node;
    end.line = base::elide(base::printable(text), kLongestQuotedEnd);
    ends.push_back(std::move(end));
  }

  std::vector<ToldEnd> ends;

 private:
  std::string pod_;
};

/// The first of the worst sort.
std::optional<ToldEnd> told_end(const model::JobModel& job) {
  EndsReading reading;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      reading.read(line);
    }
  }
  const auto first =
      std::min_element(reading.ends.begin(), reading.ends.end(),
                       [](const ToldEnd& a, const ToldEnd& b) { return a.what < b.what; });
  return first == reading.ends.end() ? std::nullopt : std::optional(*first);
}

std::string whose_limit(const ToldEnd& end) {
  return "the memory limit" + (end.of.empty() ? std::string() : " of " + end.of);
}

std::string fix_of_memory(const ToldEnd& end) {
  return end.of.starts_with("Slurm") || end.of.starts_with("the Slurm")
             ? "Raise `--mem` (or --mem-per-cpu) of the Slurm job, or lower num_workers, prefetch "
               "and the batch."
             : "Raise resources.limits.memory of the container, or lower num_workers, prefetch and "
               "the batch.";
}

std::string words_of_end(const ToldEnd& end) {
  const std::string of = end.of.empty() ? std::string("the job") : end.of;
  const std::string node = end.node.empty() ? std::string() : fmt::format(" ({})", end.node);
  switch (end.what) {
    case Outside::kMemory:
      return fmt::format("processes were killed at {}", whose_limit(end));
    case Outside::kEvicted:
      return fmt::format("Kubernetes evicted {}", end.of.empty() ? "a pod" : end.of);
    case Outside::kNode:
      return fmt::format("a node{} failed; Slurm ended {}", node,
                         of == "the job" ? std::string("the step") : of);
    case Outside::kPreempted:
      return fmt::format("Slurm preempted {}{}", of, node);
    case Outside::kTime:
      break;
  }
  return fmt::format("Slurm ended {} at its time limit", of);
}

std::string fix_of_end(const ToldEnd& end) {
  switch (end.what) {
    case Outside::kMemory:
      return fix_of_memory(end);
    case Outside::kEvicted:
      return "Read the message of the eviction with `kubectl describe pod`: it names the resource "
             "of the node that ran out. Set requests for it.";
    case Outside::kNode:
      return "Submit the job again without that node (`--exclude`), and report the node to its "
             "administrator. Start from the last checkpoint.";
    case Outside::kPreempted:
      return "Start the job again from its last checkpoint, or use a partition that is not "
             "preempted.";
    case Outside::kTime:
      break;
  }
  return "Raise `--time`, or write checkpoints. If the output had stopped earlier, run `ddpdoctor "
         "attach PID` during the next run.";
}

/// A program of the job failed by an exception of its own.
bool raised_itself(const model::JobModel& job) {
  const auto all = tracebacks(job);
  return std::any_of(all.begin(), all.end(), [](const Traceback& one) {
    return !one.ignored && !one.of_launcher && !one.of_cleanup && !is_consequence(one.exception);
  });
}

/// A rank had waited for others until its own limit: the job hung before its time was over.
bool timed_out_before(const model::JobModel& job) {
  const auto all = tracebacks(job);
  return std::any_of(all.begin(), all.end(), [](const Traceback& one) {
    return is_consequence(one.exception, Message::kTimedOut);
  });
}

}  // namespace

std::optional<MemoryLimit> told_memory_limit(const model::JobModel& job) {
  const auto end = told_end(job);
  return end && end->what == Outside::kMemory
             ? std::optional(MemoryLimit{
                   .whose = whose_limit(*end), .line = end->line, .fix = fix_of_memory(*end)})
             : std::nullopt;
}

std::optional<Finding> ended_by_scheduler(const graph::Examination& examination) {
  const auto end = told_end(examination.job);
  const bool late = end && end->what == Outside::kTime && timed_out_before(examination.job);
  if (!end || late || outlived(examination, std::nullopt)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "dead-rank";
  // A hung job reaches its time limit, too; and a table of pods shows those of other jobs.
  const bool doubtful =
      end->what == Outside::kTime || end->of.starts_with("pod ") || raised_itself(examination.job);
  finding.confidence = doubtful ? Confidence::kPossible : Confidence::kLikely;
  finding.summary = words_of_end(*end);
  finding.fix = fix_of_end(*end);
  finding.evidence.push_back({.rank = {}, .text = "log: " + end->line});
  return finding;
}

}  // namespace ddpdoctor::detectors
