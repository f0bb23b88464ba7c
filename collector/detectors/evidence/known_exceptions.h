// SPDX-License-Identifier: Apache-2.0
// Messages of torch, NCCL and Python that identify a cause: one table for the detectors of all
// kinds.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// What a known message says, where a detector asks for it.
enum class Message {
  kOther,
  kPortInUse,    // that of the rendezvous
  kNoAddress,    // torch's client found none for the name, and tries again
  kCannotReach,  // the rendezvous
  kNoPeer,       // NCCL or gloo cannot connect to another rank, or has no interface for it
  kNoDaemons,    // mpirun could not start them
  kOneGpu,       // two ranks of NCCL use it
  kSignal,       // ended a DataLoader worker
  kLostByRay,    // an actor, or the worker or node of a task
  // Consequences of another rank's failure:
  kLostConnection,  // to a process that has exited
  kTimedOut,        // in a call that other ranks did not reach
  kOfLauncher,      // a launcher's own exception after one of its ranks failed
};

/// A text in a log and its meaning.
struct KnownException {
  std::string_view
      kind{};  // the detector that uses it; empty = a consequence of another rank's failure
  std::string_view pattern{};  // part of the line
  std::string_view also{};     // another part of the same line; empty = none
  std::string_view unless{};   // a line with this part means something else; empty = none
  std::string_view said_by{};  // the library that writes it; empty = no other library does
  bool common = false;         // other programs write it, too
  std::string_view meaning{};  // completes "rank 2 …": "touched CUDA in a forked child"
  std::string_view fix{};
  Message says = Message::kOther;
  bool place_below = false;  // the relevant traceback follows the message
  // Says what failed but not why: more than possible only if a log line contains this text, or
  // NCCL printed no warning, which would say why.
  std::string_view because{};
  bool warns = false;  // of a possible hang: counts only if a rank waits or has failed
  // Raised where the end of another process is noticed: a consequence as well.
  bool of_another = false;
  bool passes = false;  // is retried: counts only if its program wrote nothing after it
  bool transient =
      false;  // ends by itself: counts only if the job did not go on, or was interrupted
  bool ambiguous = false;  // calls of the program that do not match cause it, too: at most likely
};

std::span<const KnownException> known_exceptions();

/// True for messages that a rank writes because another failed ("Connection closed by peer").
bool is_consequence(std::string_view message);

/// The same, for messages that say this.
bool is_consequence(std::string_view message, Message says);

/// The program continued after a message of this rank: it was caught, a warning, or only quoted.
bool outlived(const graph::Examination& examination, std::optional<model::Rank> rank);

/// The author of a known message: the meant library, another program, or unknown, because a line
/// without a traceback has no author.
enum class Speaker { kItself, kUnknown, kAnother };

/// Where a known message was read, unless another program wrote it.
struct Sighting {
  const KnownException* exception = nullptr;
  Speaker speaker = Speaker::kUnknown;
  std::size_t log = 0;     // as LogLine
  std::size_t number = 0;  // as LogLine
  std::optional<model::Rank> rank;
  model::CallSite place;  // the user's line in its traceback
  std::string writer;     // as Suspect
  std::string line;
};

std::vector<Sighting> sightings(const model::JobModel& job, std::string_view kind);

/// A finding from messages of a log, and the parts of its summary, for a detector that knows more.
struct ToldFinding {
  Finding finding;                  // its summary is empty until summarized()
  Message says = Message::kOther;   // the one that who, did, place and rest put into words
  std::set<Message> messages = {};  // all on which the finding rests
  std::string who = {};             // "rank 2", "a process"
  std::string did = {};             // "lost a DataLoader worker to a signal"
  std::string place = {};           // " (train.py:3, main)", or empty
  std::string rest = {};            // "; rank 0 waits for it", or empty
};

/// The finding with its summary; one that the detector has written stays.
Finding summarized(ToldFinding told);
Findings summarized(std::vector<ToldFinding> told);

/// One finding per message of this kind and line. It is certain if its traceback has a user line;
/// origins.h then weighs it.
std::vector<ToldFinding> told_by_text(const graph::Examination& examination, std::string_view kind);

/// The same findings, with their summaries.
Findings findings_from_text(const graph::Examination& examination, std::string_view kind);

/// The same findings, for messages of a rank that is not at fault: it waits.
Findings without_culprits(Findings findings);

}  // namespace ddpdoctor::detectors
