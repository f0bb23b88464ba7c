// SPDX-License-Identifier: Apache-2.0
#include "collector/model/call_frames.h"

#include <algorithm>
#include <charconv>
#include <map>
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

bool by_framework(const sources::RecordedCall& call) {
  return std::any_of(call.stack.begin(), call.stack.end(),
                     [](const auto& frame) { return is_framework_file(frame.file); });
}

bool same_frames(const sources::RecordedCall& a, const sources::RecordedCall& b) {
  return std::equal(a.stack.begin(), a.stack.end(), b.stack.begin(), b.stack.end(),
                    [](const auto& one, const auto& other) {
                      return one.line == other.line && one.file == other.file &&
                             one.function == other.function;
                    });
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

std::vector<Fact> newest_frames(const sources::Recording& recording, GroupId group_id) {
  constexpr std::size_t kNewest = 3;  // of them, one is common to ranks that diverged after it
  std::vector<Fact> out;
  std::map<std::size_t, std::vector<const sources::RecordedCall*>> newest;
  for (auto call = recording.calls.rbegin(); call != recording.calls.rend(); ++call) {
    auto& of_group = newest[call->group];
    const bool again = !of_group.empty() && same_frames(*of_group.back(), *call);
    if (call->point_to_point || again || of_group.size() == kNewest) {
      continue;
    }
    of_group.push_back(&*call);
    if (by_framework(*call)) {
      std::vector<CallSite> frames;
      for (const sources::RecordedFrame& site : call->stack) {
        frames.push_back({.file = site.file, .line = site.line, .function = site.function});
      }
      out.push_back(frames_fact(*recording.rank, group_id(recording, call->group),
                                std::int64_t{call->sequence}, frames));
    }
  }
  return out;
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
