// SPDX-License-Identifier: Apache-2.0
// Messages of torch, NCCL and Python that name a cause by themselves: one table, read by the
// detectors of each kind.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A text that a log may hold, and what it means.
struct KnownException {
  std::string_view
      kind{};  // the detector it speaks for; empty = a consequence of somebody else's failure
  std::string_view pattern{};  // part of the line
  std::string_view also{};     // another part of the same line; empty = none
  std::string_view said_by{};  // the library whose words they are; empty = no other one says so
  bool common = false;         // other programs use these words, too
  std::string_view meaning{};  // ends "rank 2 …": "touched CUDA in a forked child"
  std::string_view fix{};
  bool place_below = false;  // the traceback that matters follows the message
  // Says what failed, not why: more than possible only where a line of the logs holds this text.
  std::string_view because{};
  bool passes = false;  // is tried again: counts only where its program said nothing after it
};

std::span<const KnownException> known_exceptions();

/// True for messages that a rank writes because another one failed ("Connection closed by peer").
bool is_consequence(std::string_view message);

/// The program lived on after a message of this rank: it was caught, was a warning, or only quoted.
bool outlived(const graph::Examination& examination, std::optional<model::Rank> rank);

/// Who said a known message: the library that is meant, somebody else, or nobody can tell, as a
/// line without a traceback has no author.
enum class Speaker { kItself, kUnknown, kAnother };

/// Where a known message was read. Another program's words are none.
struct Sighting {
  const KnownException* exception = nullptr;
  Speaker speaker = Speaker::kUnknown;
  std::size_t log = 0;     // as LogLine
  std::size_t number = 0;  // as LogLine
  std::optional<model::Rank> rank;
  model::CallSite place;  // the user's line in its traceback
  std::string line;
};

std::vector<Sighting> sightings(const model::JobModel& job, std::string_view kind);

/// One finding for each message of this kind and place. It claims to be certain with the user's
/// line of its traceback; origins.h then weighs it.
Findings findings_from_text(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
