// SPDX-License-Identifier: Apache-2.0
// A traceback of these packages is recognized by a line that Python does not print below a frame.
// It is rewritten as a whole, so that every reader of tracebacks knows it.
#include "collector/imports/logs/traceback_styles.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_locals.h"
#include "collector/imports/stack_dumps/python_traceback.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestBlock = 20'000;  // lines; values may take many
constexpr std::string_view kSource = "    line: ";
constexpr std::string_view kLocals = "    locals:";

/// One line of the text.
struct Piece {
  std::string_view whole;
  std::string_view text;             // without the prefix of its writer
  std::optional<std::string> plain;  // replaces `text`
  std::string_view label{};          // "[rank1]: " to add
  bool dropped = false;
};

std::string_view unmarked(std::string_view line) {
  return line.starts_with("> File \"") ? line.substr(2) : base::trim(line);
}

bool is_frame(std::string_view line) {
  return (line.starts_with(' ') || line.starts_with('>')) && unmarked(line).starts_with("File \"");
}

/// A line of loguru with a value, below the source.
bool is_value(std::string_view line) {
  constexpr std::array<std::string_view, 3> kMarks = {"│", "└", "├"};
  line = base::trim(line);
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [line](std::string_view mark) { return line.starts_with(mark); });
}

/// "File "a.py", line 7, in Engine.train" without the class; "f.<locals>.wrapper" → "wrapper".
std::string plain_frame(std::string_view line) {
  const std::string_view frame = unmarked(line);
  const std::size_t in = frame.rfind(", in ");
  std::string_view function = in == frame.npos ? std::string_view() : frame.substr(in + 5);
  const std::size_t open = function.rfind('<');
  const std::size_t end = function.ends_with('>') && open != function.npos ? open : function.npos;
  const std::size_t dot = function.substr(0, end).rfind('.');
  function.remove_prefix(dot == function.npos ? 0 : dot + 1);
  return fmt::format("  {}{}{}", frame.substr(0, in == frame.npos ? frame.size() : in),
                     in == frame.npos ? "" : ", in ", function);
}

/// "[0, 1, 2, 3]".
model::RankSet listed(std::string_view list) {
  model::ListedRanks out = model::listed_ranks(list);
  return list.starts_with('[') && out.whole ? model::RankSet(std::move(out.ranks))
                                            : model::RankSet();
}

using Block = std::vector<Piece*>;  // from the heading to the line before the exception

/// What the locals of one traceback say.
class Values {
 public:
  void frame(std::string_view line) {
    auto read = python_frame(unmarked(line));
    frame_ = read ? *std::move(read) : model::Frame{};
  }

  /// "      group_rank = <local> 1".
  void local(std::string_view line) {
    line = base::trim(line);
    const std::size_t equals = line.find(" = ");
    std::string_view value = equals == line.npos ? std::string_view() : line.substr(equals + 3);
    if (!take_prefix(value, "<local> ")) {
      return;
    }
    const std::string_view name = line.substr(0, equals);
    take_local(frame_, name, value, claim_);
    if (name == "ranks" && frame_.file.find("torch/distributed/") != std::string::npos) {
      members_ = listed(value);
    }
  }

  [[nodiscard]] std::optional<model::Rank> rank() const {
    return claim_.rank;
  }
  [[nodiscard]] const model::RankSet& members() const {
    return members_;
  }

 private:
  model::Frame frame_;
  RankClaim claim_;
  model::RankSet members_;
};

void rewrite_exchook(const Block& block, Values& values) {
  enum class Part { kBelowFrame, kInSource, kInLocals };
  Part part = Part::kBelowFrame;
  for (Piece* piece : block) {
    const std::string_view line = piece->text;
    if (is_frame(line)) {
      part = Part::kBelowFrame;
      values.frame(line);
      piece->plain = plain_frame(line);
    } else if (part == Part::kBelowFrame && line.starts_with(kSource)) {
      part = Part::kInSource;
      piece->plain = fmt::format("    {}", line.substr(kSource.size()));
    } else if (line.starts_with(kLocals)) {
      part = Part::kInLocals;
      piece->dropped = true;
    } else if (part != Part::kBelowFrame) {
      piece->dropped = true;
      if (part == Part::kInLocals) {
        values.local(line);
      }
    }
  }
}

void rewrite_loguru(const Block& block) {
  for (Piece* piece : block) {
    piece->dropped = base::trim(piece->text).empty() || is_value(piece->text);
    if (is_frame(piece->text)) {
      piece->plain = plain_frame(piece->text);
    }
  }
}

/// The lines of the traceback whose heading is at `at`, and the index of its exception.
std::size_t end_of_block(const std::vector<Piece*>& stream, std::size_t at, Block& block) {
  std::size_t i = at + 1;
  const auto inside = [](std::string_view line) {
    return line.starts_with(' ') || line.starts_with("> File \"");
  };
  const auto blank_inside = [&](std::size_t k) {  // loguru's, between frames and before the end
    return stream[k]->text.empty() && k + 1 < stream.size() && !stream[k + 1]->text.empty();
  };
  while (i < stream.size() && i - at < kLongestBlock &&
         (inside(stream[i]->text) || blank_inside(i))) {
    block.push_back(stream[i++]);
  }
  return i;
}

/// The first line below a frame shows the package.
bool is_of_exchook(const Block& block) {
  for (std::size_t i = 0; i + 1 < block.size(); ++i) {
    if (is_frame(block[i]->text)) {
      return block[i + 1]->text.starts_with(kSource);
    }
  }
  return false;
}

bool is_of_loguru(const Block& block) {
  return !block.empty() && block.front()->text.empty() &&
         std::any_of(block.begin(), block.end(),
                     [](const Piece* piece) { return is_frame(piece->text); });
}

bool rewrite(const std::vector<Piece*>& stream, bool named,
             std::map<model::Rank, std::string>& labels, std::vector<model::RankSet>& members) {
  bool any = false;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    if (!base::trim(stream[i]->text).ends_with(kTracebackHeading)) {
      continue;
    }
    Block block;
    const std::size_t end = end_of_block(stream, i, block);
    Values values;
    if (is_of_exchook(block)) {
      rewrite_exchook(block, values);
    } else if (is_of_loguru(block)) {
      rewrite_loguru(block);
    } else {
      continue;
    }
    any = true;
    if (!values.members().empty()) {
      members.push_back(values.members());
    }
    if (const auto rank = named ? std::nullopt : values.rank()) {
      std::string& label = labels[*rank];
      label = fmt::format("[rank{}]: ", *rank);
      for (std::size_t k = i; k <= std::min(end, stream.size() - 1); ++k) {
        stream[k]->label = label;
      }
    }
    i = end - 1;
  }
  return any;
}

}  // namespace

std::optional<PlainTracebacks> with_plain_tracebacks(std::string_view text) {
  if (text.find(kTracebackHeading) == text.npos) {
    return std::nullopt;
  }
  std::vector<Piece> pieces;
  for (const std::string_view line : base::split(text, '\n')) {
    pieces.push_back({.whole = line, .text = line, .plain = {}});
  }
  std::map<std::optional<model::Rank>, std::vector<Piece*>> streams;
  for (Piece& piece : pieces) {
    const model::LogLine own = model::read_log_line(piece.whole.substr(0, kLongestLogLine));
    const auto prefix = static_cast<std::size_t>(own.text.data() - piece.whole.data());
    piece.text = piece.whole.substr(prefix);
    streams[own.rank].push_back(&piece);
  }
  PlainTracebacks out;
  std::map<model::Rank, std::string> labels;
  bool any = false;
  for (const auto& [rank, stream] : streams) {
    any = rewrite(stream, rank.has_value(), labels, out.members) || any;
  }
  if (!any) {
    return std::nullopt;
  }
  for (const Piece& piece : pieces) {
    if (piece.dropped) {
      continue;
    }
    out.text += piece.label;
    out.text += piece.whole.substr(0, piece.whole.size() - piece.text.size());
    out.text += piece.plain ? std::string_view(*piece.plain) : piece.text;
    out.text += '\n';
  }
  out.text.pop_back();
  return out;
}

}  // namespace ddpdoctor::imports
