// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/known_exceptions.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/exceptions_in_hand.h"
#include "collector/detectors/evidence/handlers.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/watchdog_errors.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestLine = 240;    // characters of a message quoted as evidence
constexpr std::size_t kLongestMessage = 40;  // lines of one exception
constexpr std::string_view kGpuFault = "gpu-fault";

constexpr std::string_view kListsKeys = "key(s) in state_dict";

/// If one line lists missing and unexpected keys, only the list that the pattern begins.
std::string_view own_list(const KnownException& known, std::string_view line) {
  const std::size_t begin = line.find(known.pattern);
  if (begin == std::string_view::npos || !known.pattern.ends_with(kListsKeys)) {
    return line;
  }
  const std::size_t end = line.find(kListsKeys, begin + known.pattern.size());
  return line.substr(begin, end - begin);
}

/// A path starts at "/dev/shm" there, unlike in "/mnt/dev/shm2/x".
bool holds_path(std::string_view line, std::string_view path) {
  const auto of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  for (std::size_t at = line.find(path); at != line.npos; at = line.find(path, at + 1)) {
    const std::size_t end = at + path.size();
    if ((at == 0 || (!of_name(line[at - 1]) && line[at - 1] != '/')) &&
        (end == line.size() || !of_name(line[end]))) {
      return true;
    }
  }
  return false;
}

bool matches(const KnownException& known, std::string_view line) {
  if (!known.unless.empty() && line.find(known.unless) != std::string_view::npos) {
    return false;
  }
  if (line.find(known.pattern) == std::string_view::npos || known.also.empty()) {
    return line.find(known.pattern) != std::string_view::npos;
  }
  const std::string_view list = own_list(known, line);
  return known.also.front() == '/' ? holds_path(list, known.also)
                                   : list.find(known.also) != std::string_view::npos;
}

std::optional<model::CallSite> any_place(std::string_view line) {
  auto site = traceback_place(line);
  site = site ? site : boxed_place({}, line);
  return site ? site : pytest_place(line);
}

bool is_of(const KnownException& known, std::string_view file) {
  return file.starts_with(fmt::format("{}/", known.said_by)) ||
         file.find(fmt::format("/{}", known.said_by)) != std::string_view::npos;
}

/// "torch.distributed.DistNetworkError: …", "[W socket.cpp:752] [c10d] …".
bool is_signed(const KnownException& known, std::string_view line) {
  return line.find(fmt::format("{}.", known.said_by)) != std::string_view::npos ||
         line.find("[c10d") != std::string_view::npos;
}

/// The library that wrote a line, by the frames between it and the user's innermost frame.
Speaker speaker_of(const KnownException& known, const LogStream& stream, std::size_t index) {
  constexpr std::size_t kNear = 4;  // lines of the message that contains this one
  constexpr std::size_t kDeepest = 200;
  if (known.said_by.empty() || is_signed(known, stream[index].text)) {
    return Speaker::kItself;
  }
  std::size_t frames = 0;
  for (std::size_t back = 1; back <= std::min(index, kDeepest); ++back) {
    const std::string_view line = stream[index - back].text;
    const auto site = any_place(line);
    if (begins_traceback(line) || (frames == 0 && !site && back > kNear) ||
        (frames > 0 && !site && indentation(line) == 0 && !pytest_message(line))) {
      break;
    }
    if (site && is_of(known, site->file)) {
      return Speaker::kItself;
    }
    if (site && model::is_user_file(site->file)) {
      break;
    }
    frames += site ? 1 : 0;
  }
  return frames > 0 ? Speaker::kAnother : Speaker::kUnknown;
}

/// The exception's first line may lack the rest: load_state_dict lists its keys on the next lines,
/// the unexpected ones after the missing ones.
bool matches_with_next(const KnownException& known, const LogStream& stream, std::size_t index) {
  if (matches(known, stream[index].text)) {
    return true;
  }
  return !known.also.empty() && known.kind == "state-dict-prefix" && index + 1 < stream.size() &&
         stream[index].text.find(known.pattern) != std::string_view::npos &&
         stream[index + 1].text.find(known.also) != std::string_view::npos &&
         stream[index + 1].text.find(kListsKeys) == std::string_view::npos;
}

/// The source line of a traceback's frame: code that may print the message, not the message.
bool is_source_line(const LogStream& stream, std::size_t index) {
  const std::size_t raise = stream[index].text.find("raise ");
  if (raise != std::string_view::npos &&
      stream[index].text.find("('", raise) != std::string_view::npos) {
    return true;  // IPython shows the lines around it with their numbers
  }
  return index > 0 && traceback_place(stream[index - 1].text) &&
         indentation(stream[index].text) > indentation(stream[index - 1].text);
}

/// Other output follows it: the retry succeeded, or another message reports the failure.
bool passed(const KnownException& known, const LogStream& stream, std::size_t index) {
  return known.passes &&
         std::any_of(stream.begin() + static_cast<std::ptrdiff_t>(index) + 1, stream.end(),
                     [&known](const LogLine& line) {
                       return !base::trim(line.text).empty() && !matches(known, line.text) &&
                              line.text.find("socket.cpp") == std::string_view::npos;
                     });
}

/// The program continued after its message: it was caught, or was a warning.
bool survived(const model::JobModel& job) {
  if (job.progress == model::Progress::kMoving) {
    return true;
  }
  const model::Observation* now = model::latest(job);
  if (!job.ended || now == nullptr || now->processes.empty()) {
    return false;
  }
  // A program that failed before it had ranks is judged by its own exit.
  const auto& all = now->processes;
  const bool any_rank = std::any_of(all.begin(), all.end(), [](const model::Process& process) {
    return process.role == model::Role::kRank;
  });
  return std::all_of(all.begin(), all.end(), [any_rank](const model::Process& process) {
    return (any_rank && process.role != model::Role::kRank) ||
           (process.exit && process.exit->status == 0);
  });
}

/// The rank that printed it has called collectives since and handles no exception: it was caught or
/// never raised. Reports about GPUs and their drivers are not exceptions of the rank.
bool went_on(const graph::Examination& examination, std::optional<model::Rank> rank) {
  const graph::Standing* standing = rank ? examination.standing(*rank) : nullptr;
  return standing != nullptr && standing->process != nullptr && alive(*standing->process) &&
         standing->waits_for_ranks() && standing->activity != graph::Activity::kRendezvous &&
         !handled_by(examination.job, *standing) && !failed_with(examination.job, *standing) &&
         !in_handler(examination.job, standing->callers, {});
}

bool a_rank_waits(const graph::Examination& examination) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& one) { return one.waits_for_ranks(); });
}

/// A rank ended as a hang ends one: with an exception, or aborted by a watchdog. A kill from
/// outside or a fault in native code has another cause.
bool a_rank_gave_up(const graph::Examination& examination) {
  return std::any_of(
      examination.standings.begin(), examination.standings.end(),
      [&examination](const graph::Standing& standing) {
        const auto exit = standing.process == nullptr ? std::nullopt
                                                      : exit_of(examination.job, *standing.process);
        return exit && (exit->signal ? *exit->signal == SIGABRT : exit->status.value_or(0) != 0);
      });
}

/// The rank ended because of a later exception of its own: it had recovered from this one.
bool got_over(const std::vector<Traceback>& all, const Sighting& sighting) {
  return std::any_of(all.begin(), all.end(), [&sighting](const Traceback& later) {
    return sighting.rank && later.rank == sighting.rank && later.log == sighting.log &&
           later.number > sighting.number + kLongestMessage && !later.of_thread && !later.ignored &&
           later.place.known() && !is_consequence(later);
  });
}

Suspect suspect_of(const Sighting& sighting, bool harmless) {
  const Confidence sure = sighting.place.known() && !sighting.exception->ambiguous
                              ? Confidence::kCertain
                              : Confidence::kLikely;
  harmless = harmless || (sighting.exception->common && sighting.speaker != Speaker::kItself);
  return {.rank = sighting.rank,
          .place = sighting.place,
          .confidence = harmless ? Confidence::kPossible : sure,
          .note = "this line raised",
          .evidence = "log: " + base::elide(base::printable(sighting.line), kLongestLine),
          .writer = sighting.writer};
}

}  // namespace

bool outlived(const graph::Examination& examination, std::optional<model::Rank> rank) {
  return survived(examination.job) || went_on(examination, rank);
}

bool is_consequence(std::string_view message) {
  const auto all = known_exceptions();
  return std::any_of(all.begin(), all.end(), [message](const KnownException& known) {
    return (known.kind.empty() || known.of_another) && matches(known, message);
  });
}

bool is_consequence(std::string_view message, Message says) {
  const auto all = known_exceptions();
  return std::any_of(all.begin(), all.end(), [&](const KnownException& known) {
    return known.kind.empty() && known.says == says && matches(known, message);
  });
}

std::vector<Sighting> sightings(const model::JobModel& job, std::string_view kind) {
  std::vector<Sighting> out;
  if (job.logs.empty()) {
    return out;
  }
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      for (const KnownException& known : known_exceptions()) {
        const Speaker speaker = known.kind == kind && matches_with_next(known, stream, i) &&
                                        !passed(known, stream, i) && !is_source_line(stream, i)
                                    ? speaker_of(known, stream, i)
                                    : Speaker::kAnother;
        if (speaker != Speaker::kAnother) {
          out.push_back(
              {.exception = &known,
               .speaker = speaker,
               .log = stream[i].log,
               .number = stream[i].number,
               .rank = stream[i].rank ? stream[i].rank : rank_in_watchdogs_line(stream[i].text),
               .place =
                   known.place_below ? user_place_below(stream, i) : user_place_above(stream, i),
               .writer = named_by_label(stream[i].whom),
               .line = std::string(base::trim(stream[i].text))});
          break;
        }
      }
    }
  }
  return out;
}

namespace {

/// "rank 1 loads", "ranks 0-1 load"; the past tense is the same for both.
std::string in_number(std::string_view meaning, bool many) {
  const std::size_t end = std::min(meaning.find(' '), meaning.size());
  std::string_view verb = meaning.substr(0, end);
  if (many && verb.ends_with("sses")) {
    verb.remove_suffix(2);
  } else if (many && verb.ends_with('s')) {
    verb.remove_suffix(1);
  }
  return std::string(verb) + std::string(meaning.substr(end));
}

/// The subject if no line names a rank: without ranks, only a process is known.
std::string unnamed(const graph::Examination& examination) {
  return examination.standings.empty() ? "a process" : "a rank";
}

/// Of suspects at one line, whose messages have one fix; `known` is the first with that fix.
ToldFinding told_of(const graph::Examination& examination, const KnownException& known,
                    const std::vector<Suspect>& there) {
  ToldFinding out{.finding = accuse(examination, known.kind, there), .says = known.says};
  const bool many = out.finding.culprits.size() > 1;
  const std::string writer = common_writer(there);
  out.who = !out.finding.culprits.empty() ? who(there)
            : writer.empty()              ? unnamed(examination)
                                          : writer;
  out.did = in_number(known.meaning, many);
  out.place = placed(there.front().place);
  out.rest = and_who_waits(out.finding);
  out.finding.fix = known.fix;
  return out;
}

bool is_said(const model::JobModel& job, std::string_view words) {
  return std::any_of(job.logs.begin(), job.logs.end(), [words](const model::Log& log) {
    return log.text.find(words) != std::string::npos;
  });
}

/// NCCL's warnings say why a call failed, if NCCL_DEBUG makes it print them.
constexpr std::string_view kReasonsOfNccl = "NCCL WARN";

/// A message that ended a traceback is of the rank that raised, which may be known otherwise than
/// by the line.
void name_who_raised(const std::vector<Traceback>& raised, std::vector<Sighting>& seen) {
  for (Sighting& sighting : seen) {
    const auto same = std::find_if(raised.begin(), raised.end(), [&sighting](const Traceback& one) {
      return one.log == sighting.log && one.number == sighting.number;
    });
    if (!sighting.rank && same != raised.end()) {
      sighting.rank = same->rank;
    }
  }
}

}  // namespace

Findings without_culprits(Findings findings) {
  for (Finding& finding : findings) {
    finding.waiting = finding.waiting.united(finding.culprits);
    finding.culprits = {};
  }
  return findings;
}

std::vector<ToldFinding> told_by_text(const graph::Examination& examination,
                                      std::string_view kind) {
  std::map<std::string_view, std::vector<Suspect>> by_fix;
  std::map<std::string_view, const KnownException*> known;
  std::map<std::string_view, bool> explained;
  // By fix and line.
  std::map<std::tuple<std::string_view, std::string, int>, std::set<Message>> messages;
  std::vector<Sighting> seen = sightings(examination.job, kind);
  const auto raised = seen.empty() ? std::vector<Traceback>{} : tracebacks(examination.job);
  name_who_raised(raised, seen);
  const bool goes_on = !seen.empty() && output_goes_on(examination.job);
  for (const Sighting& sighting : seen) {
    const bool ended =
        sighting.exception->transient && goes_on && !is_said(examination.job, "KeyboardInterrupt");
    const bool only_warned = sighting.exception->warns && !a_rank_waits(examination);
    if (ended || (only_warned && !a_rank_gave_up(examination))) {
      continue;
    }
    const bool harmless = kind == kGpuFault ? survived(examination.job)
                                            : only_warned || outlived(examination, sighting.rank) ||
                                                  (sighting.exception->of_another && goes_on) ||
                                                  got_over(raised, sighting);
    by_fix[sighting.exception->fix].push_back(suspect_of(sighting, harmless));
    known.emplace(sighting.exception->fix, sighting.exception);
    messages[{sighting.exception->fix, sighting.place.file, sighting.place.line}].insert(
        sighting.exception->says);
    const std::string_view because = sighting.exception->because;
    explained[sighting.exception->fix] |= because.empty() || is_said(examination.job, because) ||
                                          !is_said(examination.job, kReasonsOfNccl);
  }
  std::vector<ToldFinding> out;
  for (auto& [fix, suspects] : by_fix) {
    for (const auto& there : by_place(std::move(suspects))) {
      ToldFinding told = told_of(examination, *known[fix], there);
      told.messages = messages[{fix, there.front().place.file, there.front().place.line}];
      if (!explained[fix]) {
        told.finding.confidence = Confidence::kPossible;
        told.finding.fix =
            "Read the warning before this line: it says why the call failed. " + told.finding.fix;
      }
      out.push_back(std::move(told));
    }
  }
  return out;
}

Finding summarized(ToldFinding told) {
  if (told.finding.summary.empty()) {
    told.finding.summary = fmt::format("{} {}{}{}", told.who, told.did, told.place, told.rest);
  }
  return std::move(told.finding);
}

Findings summarized(std::vector<ToldFinding> told) {
  Findings out;
  for (ToldFinding& one : told) {
    out.push_back(summarized(std::move(one)));
  }
  return out;
}

Findings findings_from_text(const graph::Examination& examination, std::string_view kind) {
  return summarized(told_by_text(examination, kind));
}

}  // namespace ddpdoctor::detectors
