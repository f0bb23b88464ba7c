// SPDX-License-Identifier: Apache-2.0
#include "collector/model/gpu_queue.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "collector/stacks/native/demangle.h"

namespace ddpdoctor::model {
namespace {

using sources::RecordedEvent;

/// The demangled name without parameters and template arguments.
std::string plain_name(const std::string& mangled) {
  return stacks::readable_function(mangled);
}

Fact fact_of(const sources::Recording& recording, const RecordedEvent& event) {
  Fact fact{.rank = recording.rank, .pid = recording.pid, .kind = event.kind, .fields = {}};
  const auto object = static_cast<std::int64_t>(event.object);
  if (event.kind == "gpu-window") {
    fact.fields["open"] = event.state == sources::RecordedState::kStarted;
    fact.fields["why"] = event.text;
  } else if (event.kind == "gpu-kernel") {
    fact.fields["stream"] = object;
    fact.fields["place"] = event.peer;
    fact.fields["kernel"] = plain_name(event.text);
    if (event.state != sources::RecordedState::kUnknown) {
      fact.fields["finished"] = event.state == sources::RecordedState::kCompleted;
    }
  } else if (event.kind == "gpu-wait") {
    fact.fields["thread"] = event.count;
    fact.fields["function"] = event.text;
    fact.fields["object"] = object;
  } else {
    fact.fields["stream"] = object;
    fact.fields["place"] = event.peer;
    fact.fields["behind_stream"] = event.count;
    fact.fields["behind"] = plain_name(event.text);
  }
  return fact;
}

bool is_nccl(const std::string& kernel) {
  return kernel.find("nccl") != std::string::npos;
}

/// The queues of one rank, by stream and position.
struct Queues {
  std::map<std::tuple<std::int64_t, std::int64_t>, const Fact*> kernels;
  std::map<std::tuple<std::int64_t, std::int64_t>, const Fact*> waits;
  std::vector<const Fact*> threads;
};

constexpr double kLargestWhole = 9007199254740992.0;  // 2^53; a torn record may contain any value

std::int64_t whole(const Fact& fact, const std::string& field) {
  const double number = fact.number(field).value_or(0);
  return std::isnan(number)
             ? 0
             : static_cast<std::int64_t>(std::clamp(number, -kLargestWhole, kLargestWhole));
}

Queues queues_of(const JobModel& job, Rank rank) {
  Queues queues;
  for (const Fact& fact : job.facts) {
    const std::tuple key{whole(fact, "stream"), whole(fact, "place")};
    if (fact.rank != rank) {
      continue;
    }
    if (fact.kind == "gpu-kernel") {
      queues.kernels[key] = &fact;
    } else if (fact.kind == "gpu-wait") {
      queues.threads.push_back(&fact);
    } else if (fact.kind == "gpu-behind") {
      queues.waits[key] = &fact;
    }
  }
  return queues;
}

/// Empty if no kernel is known to precede this one.
std::string behind(const Queues& queues, const Fact& kernel) {
  const std::int64_t stream = whole(kernel, "stream");
  const std::int64_t place = whole(kernel, "place");
  if (const auto wait = queues.waits.find({stream, place}); wait != queues.waits.end()) {
    return fmt::format("{} of stream {:#x}", wait->second->text("behind").value_or(""),
                       whole(*wait->second, "behind_stream"));
  }
  const auto before = queues.kernels.find({stream, place + 1});
  if (before != queues.kernels.end() && before->second->flag("finished") == false) {
    return fmt::format("{} of the same stream", before->second->text("kernel").value_or(""));
  }
  return {};
}

void tell(const Queues& queues, Rank rank, std::vector<GpuSentence>& sentences) {
  std::vector<std::int64_t> streams;
  for (const auto& [key, kernel] : queues.kernels) {
    const std::string name = kernel->text("kernel").value_or("");
    if (!is_nccl(name) || kernel->flag("finished").value_or(false)) {
      continue;
    }
    streams.push_back(whole(*kernel, "stream"));
    const std::string before = behind(queues, *kernel);
    if (!before.empty()) {
      sentences.push_back({rank, fmt::format("{} in stream {:#x} is queued behind {}", name,
                                             streams.back(), before)});
    }
  }
  for (const Fact* thread : queues.threads) {
    const std::int64_t object = whole(*thread, "object");
    const bool is_of_stream = thread->text("function").value_or("").starts_with("cuStream");
    const bool of_nccl = std::find(streams.begin(), streams.end(), object) != streams.end();
    sentences.push_back(
        {rank,
         fmt::format("thread {} waits in {}{}", whole(*thread, "thread"),
                     thread->text("function").value_or(""),
                     object == 0 ? std::string(is_of_stream ? " for the default stream"
                                                            : " for the whole device")
                     : of_nccl   ? fmt::format(" for stream {:#x}, where NCCL's kernel is", object)
                                 : fmt::format(" for {:#x}", object))});
  }
}

}  // namespace

void add_gpu_facts(JobModel& job, const sources::Recording& recording) {
  // by stream and position, by thread
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, const RecordedEvent*> newest;
  for (const RecordedEvent& event : recording.events) {
    if (event.kind == "gpu-wait") {
      newest[{event.kind, event.count, 0}] = &event;
    } else if (event.kind.starts_with("gpu-")) {
      newest[{event.kind, static_cast<std::int64_t>(event.object), event.peer}] = &event;
    }
  }
  for (const auto& [key, event] : newest) {
    job.facts.push_back(fact_of(recording, *event));
  }
}

std::vector<GpuSentence> gpu_queue(const JobModel& job) {
  RankSet ranks;
  for (const Fact& fact : job.facts) {
    if (fact.rank && fact.kind.starts_with("gpu-")) {
      ranks.insert(*fact.rank);
    }
  }
  std::vector<GpuSentence> sentences;
  for (const Rank rank : ranks) {
    tell(queues_of(job, rank), rank, sentences);
  }
  return sentences;
}

std::vector<std::string> launched_before(const JobModel& job, Rank rank) {
  const Queues queues = queues_of(job, rank);
  std::map<std::int64_t, std::vector<std::string>> by_stream;
  std::map<std::int64_t, int> of_nccl;  // kernels of NCCL passed, newest first
  for (const auto& [key, kernel] : queues.kernels) {
    const auto stream = std::get<0>(key);
    const std::string name = kernel->text("kernel").value_or("");
    if (is_nccl(name)) {
      ++of_nccl[stream];
    } else if (of_nccl[stream] == 1) {
      by_stream[stream].insert(by_stream[stream].begin(), name);
    }
  }
  return by_stream.size() == 1 ? by_stream.begin()->second : std::vector<std::string>{};
}

std::string graph_launches(const JobModel& job) {
  std::map<Rank, std::int64_t> launches;
  for (const Fact& fact : job.facts) {
    if (fact.rank && fact.kind == "graph-launch") {
      std::int64_t& sum = launches[*fact.rank];
      sum = std::min(sum + whole(fact, "launches"), static_cast<std::int64_t>(kLargestWhole));
    }
  }
  std::map<std::int64_t, RankSet> by_count;
  for (const auto& [rank, count] : launches) {
    by_count[count].insert(rank);
  }
  std::string text;
  for (const auto& [count, ranks] : by_count) {
    text += fmt::format("{}{} times on {}", text.empty() ? "" : ", ", count, ranks.said());
  }
  return text.empty() ? text
                      : "CUDA graphs with calls of NCCL were launched " + text +
                            "; calls inside graphs are compared by the number of launches only";
}

}  // namespace ddpdoctor::model
