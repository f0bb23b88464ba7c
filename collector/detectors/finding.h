// SPDX-License-Identifier: Apache-2.0
// One detected cause, with the evidence and the fix.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// kCertain needs two independent facts, kLikely one; kPossible only looks similar.
enum class Confidence { kPossible, kLikely, kCertain };

/// The result of a decision on ranks whose memory no longer shows it: it follows from the lines
/// that they reached.
struct Outcome {
  model::RankSet ranks;
  std::string expression;
  std::string value;   // "True", "ended"
  std::string reason;  // "skipped line 24"
};

/// A relevant line of the user's code, and the reason.
struct Location {
  std::optional<model::Rank> rank;  // absent: the process is not a rank
  model::RankSet ranks;             // all ranks at this line, if there are several
  std::string file;
  int line = 0;
  std::string function;
  std::string
      note;  // "ranks 0-1,3 have waited here for 4 min 12 s", "the branch that separates them"
  std::vector<Outcome> outcomes{};  // of the decision at this line
  std::string module{};             // library of a function of compiled code: "libnccl.so.2"
};

/// What a sentence of evidence has in common with a line of the user's code: a report for people
/// omits the sentence if the lines above show that line and these words.
struct Shown {
  std::string file;
  int line = 0;
  std::string words;  // "#4 of default_pg", "all_reduce", "waiting for its GPU"
};

struct Evidence {
  std::optional<model::Rank> rank;
  std::string text;
  std::optional<Shown> shown = std::nullopt;  // only if it may repeat the lines above
};

struct Finding {
  std::string kind;
  Confidence confidence = Confidence::kPossible;
  std::string summary;      // one sentence: which rank, what, which line
  model::RankSet culprits;  // ranks whose behaviour must change; may be empty
  model::RankSet waiting;
  std::vector<Location>
      locations;  // the culprit's user line first, then the others in reading order
  std::vector<Evidence> evidence;
  std::string fix;  // imperative, concrete, one or two sentences
  /// Report's "details": parameters, pids, paths; values as JSON text ("[\"a\"]", "12", "\"x\"").
  std::map<std::string, model::FactValue> details;
  // A call that failed, of a kind whose other findings are of ranks that wait: the effect is a
  // crash, and the cause of the failure may be another finding.
  bool crashed = false;
  bool ahead = false;  // has not happened yet: for a job that makes progress; not a hang
};

using Findings = std::vector<Finding>;

constexpr std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kPossible:
      return "possible";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kCertain:
      return "certain";
  }
  return "possible";
}

}  // namespace ddpdoctor::detectors
