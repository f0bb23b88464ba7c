// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/kept_recordings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace ddpdoctor::fleet {
namespace {

using transport::ObjectInfo;

constexpr const char* kRanks = "ranks";
constexpr const char* kWorldSize = "world_size";
constexpr std::string_view kEnd = ".ddpd";

std::string field(const ObjectInfo& about, const char* name) {
  const auto found = about.metadata.find(name);
  return found == about.metadata.end() ? std::string() : found->second;
}

std::string job_of(const ObjectInfo& about) {
  const std::size_t slash = about.name.find('/');
  return slash == std::string::npos || !about.name.ends_with(kEnd) ? std::string()
                                                                   : about.name.substr(0, slash);
}

/// Without the recordings of an earlier job of this name: all their ranks run elsewhere now, or
/// their number is another one. `all` has the oldest first.
std::vector<ObjectInfo> of_newest_job(const std::vector<ObjectInfo>& all) {
  std::vector<ObjectInfo> out;
  std::set<std::string> seen;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    const std::string ranks = field(*one, kRanks);
    bool news = ranks.empty();
    for (const std::string_view rank : base::split(ranks, ',')) {
      news = seen.emplace(rank).second || news;
    }
    if (news && field(*one, kWorldSize) == field(all.back(), kWorldSize)) {
      out.push_back(*one);
    }
  }
  return out;
}

base::Result<std::string> only_job(const std::vector<ObjectInfo>& all) {
  std::set<std::string> jobs;
  for (const ObjectInfo& one : all) {
    if (const std::string job = job_of(one); !job.empty()) {
      jobs.insert(base::printable(job));
    }
  }
  if (jobs.size() != 1) {
    return jobs.empty()
               ? base::failure(
                     "the NATS server keeps no recordings",
                     "they are kept for three days, of jobs under ddpdoctor run --nats URL")
               : base::failure(fmt::format("the NATS server keeps recordings of {} jobs: {}",
                                           jobs.size(), fmt::join(jobs, ", ")),
                               "choose one with --job NAME");
  }
  return *jobs.begin();
}

base::Error no_store() {
  return {.what = "the NATS server keeps no recordings (JetStream)",
          .hint = "start it with: nats-server -js"};
}

}  // namespace

base::Result<void> keep_recording(transport::Transport& transport, const std::string& job,
                                  const NodeMarks& marks, std::string_view bytes) {
  transport::ObjectStore* const store = transport.objects();
  if (store == nullptr) {
    return tl::make_unexpected(no_store());
  }
  std::vector<int> ranks;
  for (const RankMark& rank : marks.ranks) {
    ranks.push_back(rank.rank);
  }
  return store->put({.name = fmt::format("{}/{}{}", job, marks.node, kEnd),
                     .size = bytes.size(),
                     .metadata = {{kRanks, fmt::format("{}", fmt::join(ranks, ","))},
                                  {kWorldSize, std::to_string(marks.world_size)}}},
                    bytes);
}

base::Result<std::vector<KeptRecording>> kept_recordings(transport::Transport& transport,
                                                         const std::string& job,
                                                         std::vector<base::Error>& problems) {
  transport::ObjectStore* const store = transport.objects();
  if (store == nullptr) {
    return tl::make_unexpected(no_store());
  }
  std::vector<ObjectInfo> all = TRY(store->list());
  const std::string wanted = job.empty() ? TRY(only_job(all)) : transport::subject_word(job);
  std::erase_if(all, [&wanted](const ObjectInfo& one) { return job_of(one) != wanted; });
  if (all.empty()) {
    return base::failure(fmt::format("the NATS server keeps no recordings of job {}", wanted),
                         "they are kept for three days, of jobs under ddpdoctor run --nats URL");
  }
  std::vector<KeptRecording> out;
  for (const ObjectInfo& one : of_newest_job(all)) {
    if (auto bytes = store->get(one.name)) {
      out.push_back({.name = base::printable(one.name), .bytes = std::move(*bytes)});
    } else {
      problems.push_back(bytes.error());
    }
  }
  if (out.empty()) {
    return tl::make_unexpected(problems.front());
  }
  return out;
}

}  // namespace ddpdoctor::fleet
