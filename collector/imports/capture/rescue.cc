// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/capture/rescue.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "collector/imports/capture/capture.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using model::JobModel;
using model::Rank;
using std::string_view;

struct Member {
  string_view name;
  string_view told;  // name for people
  bool by_entry;     // its entries are meaningful without those after them
};

constexpr std::array<Member, 8> kMembers = {{
    {"job", "the job", false},
    {"coverage", "what could not be seen", false},
    {"groups", "process groups", true},
    {"observations", "processes", true},
    {"collectives", "calls", true},
    {"facts", "facts", true},
    {"sources", "source lines", true},
    {"logs", "logs", true},
}};

/// Scans the text and remembers the last position at which it can be closed.
class Closer {
 public:
  explicit Closer(string_view text) : text_(text) {}

  ClosedDocument close() {
    for (std::size_t i = 0; i < text_.size() && !done_; ++i) {
      if (in_string_) {
        in_string(i);
      } else {
        outside(i);
      }
    }
    ClosedDocument out;
    if (closers_.empty() && safe_ == 0) {
      return out;
    }
    out.text = std::string(text_.substr(0, safe_)) + closers_;
    out.whole = std::move(whole_);
    out.in_observation = closers_.size() > kListDepth;
    return out;
  }

 private:
  static constexpr std::size_t kListDepth = 2;       // depth of the entries of a member
  static constexpr std::size_t kProcessesDepth = 4;  // depth of the processes of an observation

  void in_string(std::size_t i) {
    if (escaped_) {
      escaped_ = false;
    } else if (text_[i] == '\\') {
      escaped_ = true;
    } else if (text_[i] == '"') {
      in_string_ = false;
      if (wants_key_) {
        member_ = std::string(text_.substr(string_start_, i - string_start_));
        wants_key_ = false;
      }
    }
  }

  void outside(std::size_t i) {
    const char c = text_[i];
    if (c == '"') {
      in_string_ = true;
      string_start_ = i + 1;
    } else if (c == '{' || c == '[') {
      open_.push_back(c == '{' ? '}' : ']');
      wants_key_ = open_.size() == 1;
    } else if (c == '}' || c == ']') {
      leave(i);
    } else if (c == ',') {
      note(i);
      if (open_.size() == 1) {
        whole_.push_back(member_);
        wants_key_ = true;
      }
    }
  }

  void leave(std::size_t i) {
    if (open_.size() == 1) {
      whole_.push_back(member_);
    }
    if (open_.empty()) {
      return;
    }
    open_.pop_back();
    done_ = open_.empty();
    note(i + 1);
  }

  /// What precedes `end` is complete.
  void note(std::size_t end) {
    const auto* const member =
        std::find_if(kMembers.begin(), kMembers.end(),
                     [this](const Member& known) { return known.name == member_; });
    const bool entries = member != kMembers.end() && member->by_entry;
    const bool allowed = open_.size() <= 1 || (open_.size() == kListDepth && entries) ||
                         (open_.size() == kProcessesDepth && member_ == "observations");
    if (allowed) {
      safe_ = end;
      closers_.assign(open_.rbegin(), open_.rend());
    }
  }

  string_view text_;
  std::string open_;  // the closing brackets of everything open, outermost first
  std::string member_;
  bool in_string_ = false;
  bool escaped_ = false;
  bool wants_key_ = false;
  bool done_ = false;  // the document is complete
  std::size_t string_start_ = 0;
  std::size_t safe_ = 0;
  std::string closers_;
  std::vector<std::string> whole_;
};

bool is_whole(const ClosedDocument& document, string_view member) {
  return std::find(document.whole.begin(), document.whole.end(), member) != document.whole.end();
}

/// Prefers an earlier complete observation to a later one that lacks processes.
void settle_observations(const ClosedDocument& document, JobModel& job) {
  if (document.in_observation && job.observations.size() > 1) {
    job.observations.pop_back();
  }
  const bool all_seen = is_whole(document, "coverage") && !document.in_observation &&
                        (is_whole(document, "observations") || !job.observations.empty());
  if (all_seen || !job.world_size) {
    return;
  }
  job.coverage.unobserved_ranks =
      job.coverage.unobserved_ranks.united(model::all_ranks(job).minus(model::ranks_seen(job)));
}

/// Calls are saved rank by rank: those of the last rank may be incomplete, and a rank that seems to
/// have stopped earlier than the others would be accused.
std::string settle_calls(JobModel& job) {
  job.history_complete = false;
  if (job.collectives.empty()) {
    return "calls";
  }
  const bool in_order =
      std::is_sorted(job.collectives.begin(), job.collectives.end(),
                     [](const model::CollectiveCall& a, const model::CollectiveCall& b) {
                       return a.rank < b.rank;
                     });
  const Rank last = job.collectives.back().rank;
  std::erase_if(job.collectives, [in_order, last](const model::CollectiveCall& call) {
    return !in_order || call.rank == last;
  });
  std::set<Rank> told;
  for (const model::CollectiveCall& call : job.collectives) {
    told.insert(call.rank);
  }
  return told.empty() ? "calls"
                      : fmt::format("calls of all but {}",
                                    model::RankSet({told.begin(), told.end()}).said());
}

}  // namespace

ClosedDocument close_document(string_view beginning) {
  return Closer(beginning).close();
}

base::Result<JobModel> rescue_capture(string_view beginning, const std::string& name,
                                      const std::string& why) {
  const ClosedDocument document = close_document(beginning);
  const auto too_little = [&why] {
    return base::failure(why + "; too little is left of it", "was it copied to the end?");
  };
  if (!is_whole(document, "job")) {
    return too_little();
  }
  JobModel job = TRY(read_capture(document.text, name));
  settle_observations(document, job);
  std::string lost;
  for (const Member& member : kMembers) {
    if (is_whole(document, member.name)) {
      continue;
    }
    lost += lost.empty() ? "" : ", ";
    lost += member.name == "collectives" ? settle_calls(job) : std::string(member.told);
  }
  const bool any_process = !job.observations.empty() && !job.observations.back().processes.empty();
  if (!any_process && job.collectives.empty()) {
    return too_little();
  }
  if (!is_whole(document, "sources") || !is_whole(document, "collectives")) {
    job.facts.push_back({.rank = {}, .pid = {}, .kind = "recording-cut", .fields = {}});
  }
  job.coverage.warnings.push_back(
      lost.empty() ? why : fmt::format("{}; missing, all or some: {}", why, lost));
  return job;
}

}  // namespace ddpdoctor::imports
