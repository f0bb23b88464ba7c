// SPDX-License-Identifier: Apache-2.0
// Messages in the forms of torch 1.13 – 2.13 (ProcessGroupNCCL.cpp, ProcessGroupWrapper.cpp,
// ProcessGroupGloo.cpp). The rank before the line is global; the rank in the message counts within
// its group and is used only if there is no other.
#include "collector/imports/logs/c10d_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/c10d_reading.h"
#include "collector/imports/logs/monitored_barrier.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

using model::CollectiveCall;
using model::Rank;

constexpr std::size_t kMostCalls = 200'000;  // of one log
constexpr std::size_t kMostRunning = 64;     // newest calls kept per rank
constexpr std::size_t kMostInPath = 64;

/// "[PG ID 2 PG GUID 0(default_pg) Rank 3]", "[PG 0 Rank 0]", "[Rank 3]". In groups other than the
/// world, ranks count from 0 again.
std::optional<Rank> rank_in_message(std::string_view line) {
  const bool numbered = line.find("[PG ") != line.npos;
  if (numbered && line.find("PG GUID 0(") == line.npos && line.find("[PG 0 ") == line.npos &&
      line.find("(default_pg)") == line.npos) {
    return std::nullopt;
  }
  for (std::size_t at = line.find("Rank "); at != line.npos; at = line.find("Rank ", at + 5)) {
    std::string_view rest = line.substr(at + 5);
    const auto number = take_number(rest, kMaxRank);
    if (number && rest.starts_with(']')) {
      return static_cast<Rank>(*number);
    }
  }
  return std::nullopt;
}

std::string group_in_message(std::string_view line, Reading& reading) {
  for (const std::string_view word : {"PG GUID ", "[PG "}) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) {
      continue;
    }
    std::string_view rest = line.substr(at + word.size());
    const std::size_t end = rest.find_first_of("( ]");
    const std::string id = base::elide(rest.substr(0, end), 64);
    if (const auto name = between(rest, "(", ")"); name && end < rest.size() && rest[end] == '(') {
      reading.names[id] = base::elide(*name, 64);
    }
    if (!id.empty() && id != "ID") {
      return id;
    }
  }
  return {};
}

/// The size of the group, from the elements that a call of a member takes and gives; 0 for other
/// operations.
std::int64_t members_of(std::string_view operation, std::int64_t in, std::int64_t out) {
  const bool gathers = operation == "all_gather_into_tensor";
  const bool scatters = operation == "reduce_scatter_tensor";
  const std::int64_t whole = gathers ? out : in;
  const std::int64_t part = gathers ? in : out;
  const bool divides = (gathers || scatters) && part > 0 && whole % part == 0;
  return divides && whole / part <= model::kMaxWorldSize ? whole / part : 0;
}

/// "WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000)".
void read_timeout(std::string_view line, Rank rank, Reading& reading) {
  const auto sequence = number_behind(line, "SeqNum=", kMaxNumber);
  if (!sequence || reading.timeouts.size() >= kMostCalls) {
    return;
  }
  CollectiveCall call;
  call.rank = rank;
  call.group = group_in_message(line, reading);
  call.sequence = *sequence;
  const auto named = model::operation_of(between(line, "OpType=", ",").value_or(""));
  call.operation = named.name;
  call.point_to_point = named.point_to_point;
  call.count = number_behind(line, "NumelIn=", kMaxNumber);
  const auto out = number_behind(line, "NumelOut=", kMaxNumber);
  if (call.count && out) {
    reading.members[{rank, *sequence}] = members_of(call.operation, *call.count, *out);
  }
  call.state = model::CallState::kStarted;
  reading.timeouts.push_back(std::move(call));
}

/// "…, last enqueued NCCL work: 811, last completed NCCL work: 807": how far a rank has got in the
/// group beyond the call that timed out.
void read_enqueued(std::string_view line, Rank rank, const std::string& group, Reading& reading) {
  const std::size_t at = line.find("last enqueued ");
  const std::string_view rest = line.substr(at, line.find(',', at) - at);
  const auto begun = number_behind(rest, " work: ", kMaxNumber);
  if (begun && reading.enqueued.size() < kMostCalls) {
    std::int64_t& newest = reading.enqueued[{group, rank}];
    newest = std::max(newest, *begun);
  }
  const std::size_t last = line.find("last completed ");
  const auto done =
      last == line.npos ? std::nullopt : number_behind(line.substr(last), " work: ", kMaxNumber);
  if (done && reading.finished.size() < kMostCalls) {
    std::int64_t& newest = reading.finished[{group, rank}];
    newest = std::max(newest, *done);
  }
}

/// "Received a dump signal due to a collective timeout from rank 3 …. Last enqueued NCCL work: 166,
/// last completed NCCL work: 166.": everything that this rank enqueued in the group is completed.
void read_dump_signal(std::string_view line, Rank rank, Reading& reading) {
  const std::size_t end = line.find("ast completed");
  const std::size_t first = line.find("ast enqueued");
  if (first == line.npos || end == line.npos || end < first || reading.idle.size() >= kMostCalls) {
    return;
  }
  const auto begun = number_behind(line.substr(first, end - first), " work: ", kMaxNumber);
  const auto done = number_behind(line.substr(end), " work: ", kMaxNumber);
  const std::string group = group_in_message(line, reading);
  if (begun && begun == done && !group.empty()) {
    reading.idle.insert_or_assign({group, rank}, *begun);
  } else if (begun && done && *begun > *done && !group.empty() &&
             reading.enqueued.size() < kMostCalls) {
    std::int64_t& newest = reading.enqueued[{group, rank}];
    newest = std::max(newest, *begun);
  }
}

/// "SequenceNumber=31, OpType=ALLREDUCE, TensorShape=[4, 2], TensorDtypes=Float, …".
CollectiveCall fingerprint(std::string_view text, Rank rank) {
  CollectiveCall call;
  call.rank = rank;
  call.sequence = number_behind(text, "SequenceNumber=", kMaxNumber).value_or(0);
  if (const std::size_t at = text.find("OpType="); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + 7);
    call.operation = model::operation_of(rest.substr(0, rest.find_first_of(",). "))).name;
  }
  if (const auto shape = between(text, "TensorShape=[", "]")) {
    std::vector<std::int64_t> sizes;
    for (const std::string_view part : base::split(*shape, ',')) {
      if (const auto size = number_of(base::trim(part), kMaxNumber); size && sizes.size() < 64) {
        sizes.push_back(*size);
      }
    }
    call.shape = std::move(sizes);
  }
  if (const std::size_t at = text.find("TensorDtypes="); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + 13);
    call.dtype = model::dtype_of(rest.substr(0, rest.find_first_of(",) ")));
  }
  call.state = model::CallState::kStarted;
  return call;
}

/// Of the traceback that a rank prints.
struct Frames {
  model::CallSite user;                 // the user's innermost line
  model::CallSite innermost;            // the innermost line below it outside torch
  std::vector<model::CallSite> path{};  // all of them, outermost first
};

/// The innermost line outside torch and outside wrappers of the operation: the caller of
/// deepspeed's all_reduce(), not that function.
model::CallSite caller_in(const std::vector<model::CallSite>& path, const std::string& operation) {
  const auto found = std::find_if(path.rbegin(), path.rend(), [&](const model::CallSite& site) {
    return site.file.find("/torch/") == std::string::npos && site.function != operation &&
           !site.function.ends_with("wrapper") && site.function != "decorate_context";
  });
  return found == path.rend() ? model::CallSite{} : *found;
}

/// The call of the rank that reports the mismatch.
void add_mismatched(CollectiveCall own, std::string_view line, const Frames& at, Reading& reading) {
  if (reading.own.contains(own.rank) && reading.mismatched[own.rank].sequence < own.sequence) {
    return;  // its program caught the first mismatch and made another call
  }
  own.call_site = at.user.known() ? at.user : caller_in(at.path, own.operation);
  reading.within[own.rank] = at.innermost;
  reading.paths[own.rank] = at.path;
  ++reading.mismatched_at[own.sequence];
  reading.mismatch_numbered = reading.mismatch_numbered || base::contains(line, "SequenceNumber=");
  reading.own.insert(own.rank);
  reading.mismatched[own.rank] = std::move(own);
}

/// "… Rank 1 is running collective: CollectiveFingerPrint(…), but Rank 0 is running collective: …";
/// torch 1.9 – 1.13: "… Rank 1 is running inconsistent collective: CollectiveFingerPrint(…", alone.
void read_mismatch(std::string_view line, const Frames& at, Reading& reading) {
  constexpr std::string_view kRunning = " is running ";
  const std::size_t first = line.find("on ranks. Rank ");
  const std::size_t second = line.find("but Rank ");
  const auto one = number_behind(line, "on ranks. Rank ", kMaxNumber);
  if (one && *one <= kMaxRank && line.find(" is running inconsistent ") != line.npos) {
    add_mismatched(fingerprint(line.substr(first), static_cast<Rank>(*one)), line, at, reading);
    return;
  }
  if (first == line.npos || second == line.npos || second < first) {
    return;
  }
  const auto other = number_behind(line, "but Rank ", kMaxNumber);
  if (!one || !other || *one > kMaxRank || *other > kMaxRank ||
      line.find(kRunning) == std::string_view::npos) {
    return;
  }
  add_mismatched(fingerprint(line.substr(first, second - first), static_cast<Rank>(*one)), line, at,
                 reading);
  const CollectiveCall theirs = fingerprint(line.substr(second), static_cast<Rank>(*other));
  if (!reading.own.contains(theirs.rank)) {
    reading.mismatched[theirs.rank] = theirs;
  }
}

/// "[Rank 1] Running collective: CollectiveFingerPrint(…)": DETAIL with TORCH_CPP_LOG_LEVEL=INFO
/// reports every call before it is made.
void read_running(std::string_view line, std::optional<Rank> rank, Reading& reading) {
  const auto whose = rank ? rank : rank_in_message(line);
  CollectiveCall call = fingerprint(line, whose.value_or(0));
  if (!whose || call.sequence <= 0) {
    return;
  }
  call.group = "0";
  call.state = model::CallState::kEnqueued;
  auto& own = reading.running[*whose];
  if (own.size() == kMostRunning) {
    own.pop_front();
  }
  own.push_back(std::move(call));
}

/// "s [2, 5] are the" of "To our best knowledge, ranks [2, 5] are the lagging ranks".
void read_lagging(std::string_view text, Reading& reading) {
  constexpr std::size_t kMost = 4096;
  for (const Rank rank : model::listed_ranks(between(text, "[", "]").value_or("")).ranks) {
    if (reading.lagging.size() < kMost) {
      reading.lagging.insert(rank);
    }
  }
}

void read_line(std::string_view line, std::optional<Rank> rank, const Frames& at,
               Reading& reading) {
  const auto whose = rank ? rank : rank_in_message(line);
  read_trace(line, whose, reading);
  reading.desync.read(line, whose);
  if (line.find("collective operation timeout: Work") != std::string_view::npos && whose) {
    read_timeout(line, *whose, reading);
  } else if (line.find("Received a dump signal") != std::string_view::npos && whose) {
    read_dump_signal(line, *whose, reading);
  } else if (line.find("last enqueued ") != std::string_view::npos && whose) {
    auto work = number_behind(line, "at work: ", kMaxNumber);
    work = work ? work : number_behind(line, "at NCCL work: ", kMaxNumber);
    work = work ? work : number_behind(line, "at work sequence id: ", kMaxNumber);
    const std::string group = group_in_message(line, reading);
    if (work && !group.empty()) {
      reading.groups[{*whose, *work}] = group;
      read_enqueued(line, *whose, group, reading);
    }
  } else if (line.find("Detected mismatch between collectives on ranks") !=
             std::string_view::npos) {
    read_mismatch(line, at, reading);
  } else if (line.find("Running collective: CollectiveFingerPrint(") != std::string_view::npos) {
    read_running(line, whose, reading);
  } else if (const auto late = between(line, "To our best knowledge, rank", " lagging rank")) {
    read_lagging(*late, reading);
  } else {
    read_monitored_barrier(line, {.rank = whose.value_or(0), .site = at.user}, reading);
  }
}

/// torch destroys the last group while Python exits. A rank that writes this before any other has
/// timed out had nothing to wait for.
bool exits_by_itself(std::string_view line) {
  return line.find("process group has NOT been destroyed before") != line.npos ||
         line.find("destroy_process_group() was not called before program exit") != line.npos;
}

}  // namespace

Told read_c10d_text(std::string_view log, std::optional<Rank> rank, model::JobModel& job) {
  Reading reading;
  std::map<std::optional<Rank>, Frames> places;
  std::set<Rank> exited;  // before any rank timed out
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, 65'536));
    const auto whose = line.rank ? line.rank : rank;
    if (line.text.find("Traceback (most recent call last)") != std::string_view::npos) {
      places.erase(whose);
    } else if (const auto frame = python_frame(line.text)) {
      Frames& at = places[whose];
      if (model::is_user_file(frame->file)) {
        at.user = model::call_site(*frame);
        at.innermost = {};
      } else if (frame->file.find("/torch/") == std::string::npos && frame->function != "wrapper" &&
                 frame->function != "decorate_context") {
        at.innermost = model::call_site(*frame);
      }
      at.path.push_back(model::call_site(*frame));
      at.path.resize(std::min(at.path.size(), kMostInPath));
    } else if (!line.text.empty()) {
      const auto place = places.find(whose);
      read_line(line.text, whose, place == places.end() ? Frames{} : place->second, reading);
      const auto watched = whose ? whose : rank_in_message(line.text);
      read_stuck_watchdog(line.text, watched, job);
      read_watchdog_error(line.text, watched, job);
      read_unnumbered_timeout(line.text, watched, job);
      if (watched && reading.timeouts.empty() && exits_by_itself(line.text)) {
        exited.insert(*watched);
      }
    }
  }
  const std::size_t before = job.collectives.size();
  const Told told = add_calls(reading, job);
  const bool stuck = std::any_of(job.facts.begin(), job.facts.end(), [](const model::Fact& fact) {
    return fact.kind == "watchdog-stuck";
  });
  for (const Rank one : told == Told::kTimeouts || stuck ? exited : std::set<Rank>()) {
    job.facts.push_back(
        {.rank = one, .pid = {}, .kind = std::string(model::kExitedByItself), .fields = {}});
  }
  // Such a message is a rank's last one: torch ends the process.
  job.ended = job.ended || (job.collectives.size() > before && job.observations.empty());
  return told;
}

}  // namespace ddpdoctor::imports
