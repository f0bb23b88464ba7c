// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/whole_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "base/word.h"
#include "collector/program/syntax/open_text.h"

namespace ddpdoctor::program {
namespace {

using std::string_view;

constexpr std::size_t kMaxRows = 200'000;  // including inserted rows
constexpr std::size_t kMaxOpenIndents = 100;

/// The lines of one statement or header: `text`, what closes it, and its line numbers.
struct Piece {
  int indent = 0;
  std::vector<std::pair<int, string_view>> lines;
  std::string closers;  // closes what a gap left open
  bool cut_after_backslash = false;
  bool unreadable = false;

  [[nodiscard]] string_view head() const {
    return base::trim(lines.front().second);
  }
};

int indent_of(string_view line) {
  constexpr int kTabWidth = 8;  // as in CPython's tokenizer
  int indent = 0;
  for (const char c : line) {
    if (c == ' ') {
      ++indent;
    } else if (c == '\t') {
      indent = (indent / kTabWidth + 1) * kTabWidth;
    } else {
      break;
    }
  }
  return indent;
}

void cut(Piece& piece, const OpenText& open) {
  piece.closers = open.closers();
  piece.cut_after_backslash = open.continued();
}

std::vector<Piece> pieces_of(const SourceText& source) {
  std::vector<Piece> out;
  OpenText open;
  int last = 0;
  for (const auto& [number, text] : source) {
    const bool goes_on = open.any() && number == last + 1;
    if (open.any() && !goes_on) {
      cut(out.back(), open);
      open = {};
    }
    const string_view code = base::trim(text);
    last = number;
    if (!goes_on && (code.empty() || code.front() == '#')) {
      continue;
    }
    if (!goes_on) {
      out.push_back({.indent = indent_of(text), .lines = {}, .closers = {}});
    }
    out.back().lines.emplace_back(number, text);
    open.feed(text);
    if (open.cut_off() != 0) {  // what is open now is open by mistake
      out.back().closers = open.cut_off();
      open = {};
    }
  }
  if (open.any()) {
    cut(out.back(), open);
  }
  return out;
}

bool begins_with_word(string_view text, string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() || !base::is_word(text[word.size()]));
}

template <class Words>
bool begins_with_one_of(string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [text](string_view word) { return begins_with_word(text, word); });
}

/// A header opens a suite: it ends with a colon, comments removed.
bool is_header(const Piece& piece) {
  constexpr std::array<string_view, 14> kHeaders = {"if",    "elif",   "else",  "for",     "while",
                                                    "try",   "except", "with",  "finally", "def",
                                                    "class", "async",  "match", "case"};
  return begins_with_one_of(piece.head(), kHeaders) && ends_with_colon(piece.lines.back().second);
}

/// The header that may precede a clause at its own indentation.
string_view opener_of(string_view head) {
  constexpr std::array<string_view, 2> kIf = {"elif", "else"};
  constexpr std::array<string_view, 2> kTry = {"except", "finally"};
  if (begins_with_one_of(head, kIf)) {
    return "if";
  }
  return begins_with_one_of(head, kTry) ? "try" : "";
}

bool continues(string_view opener, string_view before) {
  constexpr std::array<string_view, 7> kIf = {"if",  "elif",   "for",  "while",
                                              "try", "except", "async"};
  constexpr std::array<string_view, 3> kTry = {"try", "except", "else"};
  return opener == "if" ? begins_with_one_of(before, kIf) : begins_with_one_of(before, kTry);
}

/// A line break inside a line would shift all following lines.
void append_line(std::string& buffer, string_view text) {
  for (const char c : text) {
    buffer += c == '\n' || c == '\0' ? ' ' : c;
  }
  buffer += '\n';
}

class Repair {
 public:
  explicit Repair(const SourceText& source) : pieces_(pieces_of(source)) {}

  void leave_out(const std::function<bool(const std::string&)>& reads) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Piece& piece = pieces_[i];
      const bool decorates = piece.head().starts_with('@');
      piece.unreadable = decorates ? !decorates_next(i) : !reads(by_itself(piece));
    }
  }

  WholeText done() {
    for (std::size_t i = 0; i < pieces_.size() && out_.rows.size() < kMaxRows; ++i) {
      const Piece& piece = pieces_[i];
      close_levels(piece);
      open_headers(i);
      if (const string_view opener = opener_of(piece.head()); !opener.empty()) {
        open_chain(piece, opener);
      }
      write(piece);
      const Level level{.indent = piece.indent,
                        .head = piece.unreadable ? string_view() : piece.head(),
                        .header = !piece.unreadable && is_header(piece)};
      if (!open_.empty() && open_.back().indent == piece.indent) {
        open_.back() = level;
      } else {
        open_.push_back(level);
      }
    }
    fill_suite(0);
    while (!open_.empty()) {
      finish_try(open_.back());
      open_.pop_back();
    }
    return std::move(out_);
  }

 private:
  /// The last statement at one indentation.
  struct Level {
    int indent = 0;
    string_view head;
    bool header = false;
  };

  /// Inserts a header for each indentation to which later statements of the same suite return.
  void open_headers(std::size_t i) {
    const int indent = pieces_[i].indent;
    const bool suite = !open_.empty() && open_.back().header;
    int outer = open_.empty() ? -1 : open_.back().indent;
    if (indent == outer) {
      return;
    }
    std::vector<int> levels = {indent};
    for (std::size_t j = i + 1; j < pieces_.size() && pieces_[j].indent > outer; ++j) {
      if (pieces_[j].indent < levels.back() && levels.size() < kMaxOpenIndents) {
        levels.push_back(pieces_[j].indent);
      }
    }
    std::reverse(levels.begin(), levels.end());
    // A suite with a known header begins at its outermost level; any other needs an inserted
    // header.
    if (!suite && (outer >= 0 || levels.front() > 0)) {
      make_header(std::max(outer, 0), pieces_[i].lines.front().first);
    }
    for (std::size_t k = 0; k + 1 < levels.size(); ++k) {
      make_header(levels[k], pieces_[i].lines.front().first);
    }
  }

  void close_levels(const Piece& next) {
    fill_suite(next.indent);
    while (!open_.empty() && open_.back().indent > next.indent) {
      finish_try(open_.back());
      open_.pop_back();
    }
    if (!open_.empty() && open_.back().indent == next.indent && opener_of(next.head()) != "try") {
      finish_try(open_.back());
    }
  }

  /// A header without a known suite gets one before the next statement outside it.
  void fill_suite(int next_indent) {
    if (!open_.empty() && open_.back().header && open_.back().indent >= next_indent) {
      add_row(unknown(open_.back().indent + 1, ""), out_.rows.back());
    }
  }

  /// Adds a clause to a try whose clauses are unknown.
  void finish_try(const Level& level) {
    if (begins_with_word(level.head, "try")) {
      add_row(unknown(level.indent, "finally: "), out_.rows.back());
    }
  }

  /// An inserted row: `before`, the placeholder name, `behind`.
  static std::string unknown(int indent, string_view before, string_view behind = "") {
    std::string out = indented(indent, before);
    out += kUnknownName;
    out += behind;
    return out;
  }

  static std::string indented(int indent, string_view text) {
    std::string out(static_cast<std::size_t>(indent), ' ');
    out += text;
    return out;
  }

  /// A decorator must precede a definition.
  [[nodiscard]] bool decorates_next(std::size_t i) const {
    constexpr std::array<string_view, 3> kDefinitions = {"def", "class", "async"};
    return i + 1 < pieces_.size() && pieces_[i + 1].indent == pieces_[i].indent &&
           (pieces_[i + 1].head().starts_with('@') ||
            begins_with_one_of(pieces_[i + 1].head(), kDefinitions));
  }

  /// The piece with the text that makes it a module of its own.
  static std::string by_itself(const Piece& piece) {
    std::string out;
    const string_view opener = opener_of(piece.head());
    if (piece.indent > 0) {
      out += "if _:\n";
    }
    if (begins_with_word(piece.head(), "case")) {
      out = "match _:\n";
    } else if (!opener.empty()) {
      out += indented(piece.indent, opener == "if" ? "if _: pass\n" : "try: pass\n");
    }
    for (const auto& [number, text] : piece.lines) {
      append_line(out, text);
    }
    out.insert(out.size() - 1, piece.closers);
    if (is_header(piece)) {
      const bool match = begins_with_word(piece.head(), "match");
      out += indented(piece.indent + 1, match ? "case _: pass\n" : "pass\n");
    }
    if (begins_with_word(piece.head(), "try")) {
      out += indented(piece.indent, "finally: pass\n");
    }
    return out;
  }

  void make_header(int indent, int line) {
    const Level level{.indent = indent, .head = "with", .header = true};
    if (!open_.empty() && open_.back().indent == indent) {
      open_.back() = level;
    } else {
      open_.push_back(level);
    }
    add_row(unknown(indent, "with ", ":"), line);
  }

  /// Inserts the `if` for an `else` that has none.
  void open_chain(const Piece& piece, string_view opener) {
    if (piece.unreadable) {
      return;
    }
    const bool known = !open_.empty() && open_.back().indent == piece.indent &&
                       continues(opener, open_.back().head);
    if (!known) {
      const std::string header = opener == "if" ? unknown(0, "if ", ": ") : std::string("try: ");
      add_row(unknown(piece.indent, header), piece.lines.front().first);
    }
  }

  void write(const Piece& piece) {
    if (piece.unreadable) {
      for (const auto& [number, text] : piece.lines) {
        add_row(indented(piece.indent, kUnreadable), number);
      }
      return;
    }
    for (const auto& [number, text] : piece.lines) {
      add_row(text, number);
    }
    if (piece.cut_after_backslash) {
      out_.buffer[out_.buffer.rfind('\\')] = ' ';
    }
    out_.buffer.insert(out_.buffer.size() - 1, piece.closers);
  }

  void add_row(string_view text, int line) {
    append_line(out_.buffer, text);
    out_.rows.push_back(line);
  }

  std::vector<Piece> pieces_;
  std::vector<Level> open_;
  WholeText out_;
};

}  // namespace

bool has_gaps(const SourceText& source) {
  return !source.empty() &&
         (source.begin()->first != 1 || source.rbegin()->first != static_cast<int>(source.size()));
}

WholeText whole_text(const SourceText& source,
                     const std::function<bool(const std::string&)>& reads) {
  Repair repair(source);
  repair.leave_out(reads);
  return repair.done();
}

WholeText whole_text(const SourceText& source) {
  if (source.empty()) {
    return {};
  }
  if (has_gaps(source)) {
    return Repair(source).done();
  }
  WholeText out;
  for (const auto& [number, text] : source) {
    append_line(out.buffer, text);
  }
  return out;
}

}  // namespace ddpdoctor::program
