// SPDX-License-Identifier: Apache-2.0
#include "collector/model/call_frames.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

std::optional<CallSite> site_of(std::string_view text) {
  CallSite site;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), site.line);
  const auto after_line = static_cast<std::size_t>(end - text.data());
  const std::size_t after_name = text.find(' ', after_line + 1);
  if (error != std::errc() || after_line >= text.size() || after_name == text.npos ||
      site.line < 1) {
    return std::nullopt;
  }
  site.function = text.substr(after_line + 1, after_name - after_line - 1);
  site.file = text.substr(after_name + 1);
  return site;
}

}  // namespace

Fact frames_fact(Rank rank, const std::string& group, std::int64_t sequence,
                 const std::vector<CallSite>& frames) {
  std::vector<std::string> texts;
  for (const CallSite& site : frames) {
    if (is_user_file(site.file) || is_framework_file(site.file)) {
      texts.push_back(fmt::format("{} {} {}", site.line, site.function, site.file));
    }
  }
  return {.rank = rank,
          .pid = std::nullopt,
          .kind = std::string(kCallFrames),
          .fields = {{"group", group}, {"sequence", sequence}, {"frames", std::move(texts)}}};
}

std::vector<Fact> NewestFrames::facts() const {
  std::vector<Fact> out;
  for (const auto& [group, calls] : kept_) {
    for (const Call& call : calls) {
      const bool by_framework =
          std::any_of(call.frames.begin(), call.frames.end(),
                      [](const CallSite& frame) { return is_framework_file(frame.file); });
      if (by_framework) {
        out.push_back(frames_fact(rank_, group, call.sequence, call.frames));
      }
    }
  }
  return out;
}

std::vector<Fact> newest_frames(const sources::Recording& recording, GroupId group_id) {
  NewestFrames newest(*recording.rank);
  for (auto call = recording.calls.rbegin(); call != recording.calls.rend(); ++call) {
    if (!call->point_to_point) {
      newest.add(group_id(recording, call->group), std::int64_t{call->sequence}, call->stack);
    }
  }
  return newest.facts();
}

std::vector<CallSite> frames_in(const Fact& fact) {
  std::vector<CallSite> out;
  for (const std::string& text : fact.list("frames")) {
    auto site = site_of(text);
    if (!site) {
      return {};
    }
    out.push_back(std::move(*site));
  }
  return out;
}

void drop_frames(JobModel& job, const RankSet& ranks) {
  std::erase_if(job.facts, [&ranks](const Fact& fact) {
    return fact.kind == kCallFrames && fact.rank && ranks.contains(*fact.rank);
  });
}

std::vector<CallSite> frames_of_call(const JobModel& job, Rank rank, const std::string& group,
                                     std::int64_t sequence) {
  for (const Fact* fact : facts(job, kCallFrames)) {
    if (fact->rank != rank || fact->text("group") != group ||
        fact->number("sequence") != static_cast<double>(sequence)) {
      continue;
    }
    return frames_in(*fact);
  }
  return {};
}

}  // namespace ddpdoctor::model
