// SPDX-License-Identifier: Apache-2.0
// Reads files in as many threads as there are cores; each has its own vocabulary, and these are
// joined at the end, so that the order in which threads finish does not matter.
#include "collector/imports/flight_recorder/flight_recorder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/parallel.h"
#include "base/text.h"
#include "collector/imports/documents/pickle.h"
#include "collector/imports/documents/plain_json.h"
#include "collector/imports/flight_recorder/job.h"
#include "collector/imports/flight_recorder/parts.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostNamed = 3;  // files that one warning names

/// The result of reading one file.
struct Outcome {
  std::optional<Dump> dump;
  base::Error error;
  bool wants_to_run = false;
  bool nameless = false;
};

struct Worker {
  Vocabulary vocabulary;
  DumpReader reader{vocabulary};
  PlainDocument document;
  std::string bytes;
};

bool is_json(std::string_view bytes) {
  return base::trim(bytes.substr(0, 256)).starts_with('{');
}

Outcome failed(std::string what, std::string hint = {}) {
  return {.dump = {}, .error = {.what = std::move(what), .hint = std::move(hint)}};
}

Outcome read_one(const std::string& path, LoadFile load, Worker& worker) {
  const auto written = load(path, worker.bytes);
  if (!written) {
    return failed(written.error().what, written.error().hint);
  }
  if (worker.bytes.empty()) {
    return failed(fmt::format("{} is empty", path), "was it written to the end?");
  }
  const auto rank = rank_in_name(path);
  if (!rank) {
    Outcome out = failed(fmt::format("the rank of {} is unknown: its name has no number", path),
                         "name it as torch does: …_rank_3");
    out.nameless = true;
    return out;
  }
  if (is_json(worker.bytes)) {
    if (const auto read = read_plain_json(worker.bytes, path, worker.document); !read) {
      return failed(read.error().what, read.error().hint);
    }
  } else if (auto read = read_pickle(worker.bytes, path, worker.document); !read) {
    return {.dump = {},
            .error = std::move(read.error().error),
            .wants_to_run = read.error().wants_to_run};
  }
  std::string problem;
  Outcome out;
  out.dump = worker.reader.read(worker.document, problem);
  if (!out.dump) {
    return failed(fmt::format(
        "{} is {}: {}", path,
        worker.document.cut ? "cut before its first entry" : "not a flight-recorder dump",
        problem));
  }
  out.dump->path = path;
  out.dump->rank = *rank;
  out.dump->written = *written;
  return out;
}

std::vector<Outcome> read_each(const std::vector<std::string>& paths, LoadFile load,
                               Vocabulary& vocabulary) {
  std::vector<Outcome> outcomes(paths.size());
  std::vector<Worker> workers(base::threads_for(paths.size()));
  base::in_parallel(paths.size(), [&](std::size_t thread, std::size_t i) {
    outcomes[i] = read_one(paths[i], load, workers[thread]);
  });
  for (Worker& worker : workers) {
    vocabulary.join(std::move(worker.vocabulary));
  }
  return outcomes;
}

/// Of two dumps of one rank, prefers the newer one, then the one with more calls, then pickles,
/// because JSON has no stacks.
bool is_better(const Dump& a, const Dump& b) {
  return std::tuple(!a.cut, a.newest_ns, a.calls.size(), !a.path.ends_with(".json")) >
         std::tuple(!b.cut, b.newest_ns, b.calls.size(), !b.path.ends_with(".json"));
}

/// The time of each call of a process: by group, kind and number.
using Moments = std::map<std::tuple<std::string_view, bool, std::int64_t>, std::int64_t>;

Moments moments_of(const Dump& dump) {
  Moments out;
  for (const DumpedCall& call : dump.calls) {
    if (call.created_ns > 0) {
      out.try_emplace({dump.groups[call.group].name, call.point_to_point, call.sequence},
                      call.created_ns);
    }
  }
  return out;
}

/// Two processes that ran at the same time wrote the dumps: calls with equal numbers have different
/// times. This excludes runs of which one ended before the other began, and dumps without a common
/// call.
bool ran_beside(const Dump& a, const Dump& b) {
  constexpr std::int64_t kSameCall = 1000;  // ns
  const Moments known = moments_of(a);
  const Moments other = moments_of(b);
  bool differ = false;
  std::int64_t first_of_b = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_of_a = first_of_b;
  for (const auto& [call, time] : known) {
    first_of_a = std::min(first_of_a, time);
  }
  for (const auto& [call, time] : other) {
    first_of_b = std::min(first_of_b, time);
    const auto same = known.find(call);
    if (same == known.end()) {
      continue;
    }
    if (std::max(same->second, time) - std::min(same->second, time) <= kSameCall) {
      return false;
    }
    differ = true;
  }
  return differ && first_of_a <= b.newest_ns && first_of_b <= a.newest_ns;
}

std::string dispute_of(const Dump& a, const Dump& b) {
  return fmt::format(
      "{} and {} both say rank {}, and two processes wrote them: name each after its rank in the "
      "job, not on its machine (…_rank_3)",
      a.path, b.path, a.rank);
}

std::vector<Dump> one_for_each_rank(std::vector<Dump> dumps, std::vector<std::string>& warnings) {
  std::stable_sort(dumps.begin(), dumps.end(),
                   [](const Dump& a, const Dump& b) { return a.rank < b.rank; });
  std::vector<Dump> out;
  std::vector<std::string> dropped;
  std::vector<std::string> disputes;
  for (Dump& dump : dumps) {
    if (out.empty() || out.back().rank != dump.rank) {
      out.push_back(std::move(dump));
      continue;
    }
    if (out.back().disputed || ran_beside(dump, out.back())) {
      disputes.push_back(dispute_of(out.back(), dump));
      out.back().disputed = true;
      continue;
    }
    if (is_better(dump, out.back())) {
      std::swap(dump, out.back());
    }
    dropped.push_back(dump.path);
  }
  for (Dump& dump : out) {
    if (dump.disputed) {
      dump.calls.clear();
      dump.groups.clear();
      dump.newest_ns = 0;
    }
  }
  if (!dropped.empty()) {
    warnings.push_back(
        fmt::format("{} of a rank that another dump covers, too, and {} left out: {}{}",
                    dropped.size() == 1 ? "1 dump is" : fmt::format("{} dumps are", dropped.size()),
                    dropped.size() == 1 ? "was" : "were", dropped.front(),
                    dropped.size() == 1 ? "" : ", for one"));
  }
  if (!disputes.empty()) {
    warnings.push_back(disputes.front());
  }
  return out;
}

/// The error if none of the dumps is usable.
base::Error nothing_whole(const std::vector<Dump>& dumps, const std::vector<base::Error>& unusable,
                          std::size_t nameless, const std::vector<std::string>& warnings) {
  const auto cut =
      std::find_if(dumps.begin(), dumps.end(), [](const Dump& dump) { return !dump.disputed; });
  if (dumps.empty()) {
    base::Error first = unusable.front();
    const std::size_t more = unusable.size() - 1;
    if (more > 0 && nameless == unusable.size()) {
      first.what += fmt::format(" (nor has that of {} more dump{})", more, more == 1 ? "" : "s");
    } else if (more > 0) {
      first.what += fmt::format(" (and {} more dump{} cannot be used)", more, more == 1 ? "" : "s");
    }
    return first;
  }
  if (cut == dumps.end()) {
    return {.what = warnings.back(), .hint = {}};
  }
  const std::size_t more = dumps.size() + unusable.size() - 1;
  return {.what = fmt::format("{} is cut: its newest calls are missing{}", cut->path,
                              more == 0 ? ""
                                        : fmt::format(" (and of {} more dump{} none is whole)",
                                                      more, more == 1 ? "" : "s")),
          .hint = "at least one whole dump is needed"};
}

/// Summarizes many failures of one folder in a few lines.
void tell(std::vector<base::Error> all, std::vector<base::Error>& failures) {
  const std::size_t more = all.size() > kMostNamed ? all.size() - kMostNamed : 0;
  all.resize(std::min(all.size(), kMostNamed));
  if (more > 0) {
    all.back().what += fmt::format(" (and {} more dumps that cannot be used)", more);
  }
  std::move(all.begin(), all.end(), std::back_inserter(failures));
}

}  // namespace

bool is_flight_recorder_dump(std::string_view head, std::string_view path) {
  constexpr std::array<std::string_view, 3> kWords = {"pg_config", "collective_seq_id",
                                                      "profiling_name"};
  const bool words = base::contains_any(head, kWords);
  const bool json = base::trim(head.substr(0, 256)).starts_with('{');
  if (json) {
    return words && head.find("ddpdoctor.") == std::string_view::npos;
  }
  const std::string_view name = base::file_name(path);
  const bool named = (!name.empty() && name.back() >= '0' && name.back() <= '9') ||
                     name.ends_with(".pickle") || name.ends_with(".pkl");
  return begins_like_pickle(head) && (words || named);
}

base::Result<model::JobModel> read_flight_recorder(const std::vector<std::string>& paths,
                                                   LoadFile load,
                                                   std::vector<base::Error>& failures) {
  Vocabulary vocabulary;
  std::vector<Outcome> outcomes = read_each(paths, load, vocabulary);
  std::vector<Dump> dumps;
  std::vector<base::Error> unusable;
  std::size_t nameless = 0;
  for (Outcome& outcome : outcomes) {
    if (outcome.wants_to_run) {
      return tl::make_unexpected(std::move(outcome.error));
    }
    nameless += outcome.nameless ? 1 : 0;
    if (outcome.dump) {
      dumps.push_back(std::move(*outcome.dump));
    } else {
      unusable.push_back(std::move(outcome.error));
    }
  }
  std::vector<std::string> warnings;
  dumps = one_for_each_rank(std::move(dumps), warnings);
  const bool some_whole = std::any_of(dumps.begin(), dumps.end(),
                                      [](const Dump& dump) { return !dump.cut && !dump.disputed; });
  if (!some_whole) {
    return tl::make_unexpected(nothing_whole(dumps, unusable, nameless, warnings));
  }
  model::JobModel job = job_of_dumps(dumps, vocabulary);
  job.coverage.warnings.insert(job.coverage.warnings.end(), warnings.begin(), warnings.end());
  tell(std::move(unusable), failures);
  return job;
}

}  // namespace ddpdoctor::imports
