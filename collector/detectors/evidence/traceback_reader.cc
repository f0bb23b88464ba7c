// SPDX-License-Identifier: Apache-2.0
// A traceback is open from its heading to the line of its exception. A line that is neither part of
// it nor looks like an exception belongs to another writer, unless nothing better follows. If
// several are open, a frame belongs to the one whose last source line calls its function.
#include "collector/detectors/evidence/traceback_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/nccl_reason.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostOpen = 32;     // processes that print at the same time into one stream
constexpr std::size_t kLongest = 600;     // lines from heading to end, including foreign lines
constexpr std::size_t kMostFrames = 400;  // Python itself shortens deep recursion
constexpr std::size_t kAhead = 200;       // lines searched for a better end
constexpr std::size_t kNearHeading = 3;
constexpr std::size_t kLongestSource = 300;
constexpr std::size_t kMostMessages = 1000;  // of pytest

struct Open {
  std::size_t begun = 0;
  std::size_t touched = 0;  // number of its newest line
  std::size_t base = 0;     // indentation of its heading and of its exception
  bool boxed = false;       // of the package rich
  bool no_heading = false;  // of a SyntaxError in the script itself
  bool of_thread = false;
  bool ignored = false;
  bool of_batch = false;
  std::optional<Remote> remote{};
  std::vector<model::CallSite> frames{};  // outermost first
  std::string_view source{};              // the source line below the newest frame
};

bool is_outermost(std::string_view function) {
  return function == "<module>" || function == "_bootstrap" || function == "_run_module_as_main" ||
         function == "_bootstrap_inner";
}

/// The function name without its class.
std::string_view plain(std::string_view function) {
  const std::size_t dot = function.rfind('.');
  return dot == std::string_view::npos ? function : function.substr(dot + 1);
}

int fitness(const Open& open, const model::CallSite& frame) {
  const bool outermost = is_outermost(frame.function);
  if (open.frames.empty()) {
    return outermost ? 4 : 1;
  }
  if (outermost) {
    const std::string& last = open.frames.back().function;
    return last.starts_with("_run") || last.starts_with("_call_with") ? 4 : 0;
  }
  return open.source.find(plain(frame.function)) == std::string_view::npos ? 1 : 3;
}

int fitness(const Open& open, std::string_view exception) {
  if (open.frames.empty() || (open.source.empty() && !open.boxed)) {
    return open.frames.empty() ? 0 : 1;
  }
  const std::string_view name = exception.substr(0, exception.find(':'));
  if (open.source.find(plain(name)) != std::string_view::npos) {
    return 3;
  }
  const bool in_library = !model::is_user_file(open.frames.back().file);
  return is_consequence(exception) && in_library ? 2 : 1;
}

class Reader {
 public:
  explicit Reader(const LogStream& stream) : stream_(stream) {}

  std::vector<Traceback> read() {
    for (std::size_t i = 0; i < stream_.size(); ++i) {
      read_line(i, stream_[i].text);
    }
    return std::move(out_);
  }

 private:
  void read_line(std::size_t i, std::string_view line);
  void begin(std::size_t i, std::string_view line);
  bool begin_remote(std::size_t i, std::string_view line);
  void add_frame(std::size_t i, model::CallSite frame, std::string_view line);
  bool ends_here(std::size_t i, std::string_view text, std::size_t base);
  void end(std::size_t i, std::string_view exception);
  void end_pytest(std::size_t i, std::string_view message);
  void add_source(std::string_view line, Open& newest);
  void keep(Traceback traceback);

  template <typename About>
  Open& fittest(const About& about) {
    return *std::max_element(open_.begin(), open_.end(), [&](const Open& a, const Open& b) {
      const int left = fitness(a, about);
      const int right = fitness(b, about);
      return left != right ? left < right : a.touched < b.touched;
    });
  }

  const LogStream& stream_;
  std::vector<Open> open_;
  std::string_view cut_;  // the first part of a line that a box cut in two
  std::vector<Traceback> out_;
  bool chained_ = false;
  bool translated_ = false;   // chained by "raise … from …"
  std::size_t messages_ = 0;  // of pytest
  bool in_message_ = false;   // of pytest
  bool timed_out_ = false;    // according to the watchdog of this rank
  // Before this line, no traceback ends at a line that does not look like an exception.
  std::size_t not_before_ = 0;
};

void Reader::begin(std::size_t i, std::string_view line) {
  Open open{.begun = i, .touched = i, .base = indentation(line)};
  open.boxed = line.find("last) ─") != std::string_view::npos;
  for (std::size_t back = 0; back <= std::min(i, kNearHeading); ++back) {
    const std::string_view above = stream_[i - back].text;
    if (back > 0 && (begins_traceback(above) || end_like(above) == EndLike::kYes)) {
      break;
    }
    open.remote = back > 0 && announces_quotation(above) ? std::optional(Remote()) : open.remote;
    open.of_thread = open.of_thread || above.find("Exception in thread") != above.npos;
    open.ignored = open.ignored || above.find("Exception ignored in") != above.npos;
  }
  if (open_.size() == kMostOpen) {
    open_.erase(open_.begin());
  }
  open_.push_back(std::move(open));
  in_message_ = false;
}

/// Ray's heading: the frames above it are of the process that waited, those below of the other. A
/// task that waited for a task has a heading of its own above the inner one.
bool Reader::begin_remote(std::size_t i, std::string_view line) {
  auto remote = ray_heading(line);
  const bool shows_frame = remote && i + 1 < stream_.size() && traceback_place(stream_[i + 1].text);
  if (!shows_frame) {
    return false;
  }
  if (open_.empty()) {
    open_.push_back({.begun = i, .touched = i, .base = 0});
  }
  Open& open = *std::max_element(open_.begin(), open_.end(), [](const Open& a, const Open& b) {
    return a.touched < b.touched;
  });
  remote->awaited = open.remote ? open.remote->awaited : innermost_user(open.frames);
  open.remote = std::move(remote);
  open.frames.clear();
  open.source = {};
  open.touched = i;
  return true;
}

void Reader::add_frame(std::size_t i, model::CallSite frame, std::string_view line) {
  if (open_.empty()) {
    if (!frame.function.empty()) {
      return;  // a stack without a traceback heading
    }
    open_.push_back({.begun = i, .touched = i, .base = 0, .no_heading = true});
  }
  Open& open = fittest(frame);
  const std::size_t indent = indentation(line);
  open.base = open.boxed ? 0 : std::min(open.base, indent - std::min<std::size_t>(indent, 2));
  open.of_batch = open.of_batch || frame.function == "_try_get_data";
  open.touched = i;
  open.source = {};
  if (open.frames.size() < kMostFrames) {
    open.frames.push_back(std::move(frame));
  }
}

/// No following line is a better end, and no following frame belongs to this traceback.
bool Reader::ends_here(std::size_t i, std::string_view text, std::size_t base) {
  if (i < not_before_) {
    return false;
  }
  const EndLike here = end_like(text.substr(base));
  std::size_t headings = 0;
  std::size_t ends = 0;
  const std::size_t last = std::min(stream_.size(), i + 1 + kAhead);
  for (std::size_t k = i + 1; k < last; ++k) {
    const std::string_view line = pytest_message(stream_[k].text).value_or(stream_[k].text);
    if (begins_traceback(line)) {
      ++headings;
      continue;
    }
    const EndLike there = indentation(line) == base ? end_like(line.substr(base)) : EndLike::kNo;
    const bool better = there == EndLike::kYes ||
                        (headings == 0 && there == EndLike::kPerhaps && here == EndLike::kNo);
    ends += better ? 1 : 0;
    if ((headings == 0 && traceback_place(line)) || ends > headings) {
      not_before_ = k;
      return false;
    }
  }
  return true;
}

void Reader::keep(Traceback traceback) {
  const bool chained = std::exchange(chained_, false) && !out_.empty();
  const bool translated = std::exchange(translated_, false) && chained;
  if (chained) {  // the first of a chain may have been raised long before it was printed
    traceback.after_timeout = false;
    out_.back().after_timeout = false;
  }
  if (translated && out_.back().remote && out_.back().place.known()) {
    // The same exception, raised again where its result was awaited.
    out_.back().remote->awaited = traceback.place;
    out_.back().number = traceback.number;
    return;
  }
  const bool reworded = chained && rewords(out_.back(), traceback);
  if (chained && (reworded || (translated && is_end_of_wait(out_.back().exception)) ||
                  !is_consequence(traceback.exception))) {
    // It was caught, perhaps reworded by the same function; a later one ended the program.
    if (!traceback.place.known()) {
      traceback.place = out_.back().place;
      traceback.frames = out_.back().frames;
    }
    out_.pop_back();
  }
  out_.push_back(std::move(traceback));
}

void Reader::end(std::size_t i, std::string_view exception) {
  Open& open = fittest(exception);
  const LogLine& line = stream_[i];
  Traceback told{.rank = line.rank,
                 .time = line.time,
                 .log = line.log,
                 .number = line.number,
                 .place = {},
                 .exception = std::string(base::trim(exception)),
                 .of_thread = open.of_thread,
                 .of_batch = open.of_batch,
                 .of_child = is_of_forked_child(open.frames),
                 .ignored = open.ignored,
                 .of_launcher = is_of_launcher(open.frames),
                 .remote = open.remote,
                 .of_process = is_of_started_process(open.frames),
                 .of_cleanup = is_of_cleanup(open.frames),
                 .waits_for_children = waits_for_children(open.frames),
                 .awaited = awaited_context(open.frames),
                 .writer = named_by_label(line.whom),
                 .source = std::string(open.source)};
  told.raiser = open.frames.empty() ? model::CallSite{} : open.frames.back();
  told.after_timeout = timed_out_ && is_of_torch_distributed(told.raiser);
  const auto of_checkpoint = failed_rank_of_checkpoint(exception);
  told.rank = of_checkpoint ? of_checkpoint : told.rank;
  if (exception.find("NCCL error in: ") != std::string_view::npos) {
    told.exception += nccl_reason(stream_, i);
  }
  model::CallSite installed;
  for (auto frame = open.frames.rbegin(); frame != open.frames.rend(); ++frame) {
    if (model::is_user_file(frame->file)) {
      told.frames.push_back(*frame);
    } else if (!installed.known() && may_be_users_file(frame->file)) {
      installed = *frame;
    }
  }
  told.place = told.frames.empty() ? installed : told.frames.front();
  const std::string_view name = exception.substr(0, exception.find(':'));
  const bool real = !open.no_heading || is_of_syntax(name);
  open_.erase(open_.begin() + (&open - open_.data()));
  if (real) {
    keep(std::move(told));
  }
}

void Reader::end_pytest(std::size_t i, std::string_view message) {
  std::string exception(base::trim(message));
  if (exception.starts_with("-- ")) {
    return;  // of a spawned child: its traceback follows
  }
  PytestFrames told = pytest_frames(stream_, i);
  if (end_like(exception) == EndLike::kNo && !told.exception.empty()) {  // "assert 3 == 4"
    exception = told.exception + ": " + exception;
  }
  if (end_like(exception) == EndLike::kNo && !exception.starts_with("assert")) {
    return;
  }
  open_.push_back({.begun = i, .touched = i, .base = 0, .frames = std::move(told.frames)});
  end(i, exception);
}

/// Adds the line to the newest traceback without one: of two processes that print at once, each
/// writes one.
void Reader::add_source(std::string_view line, Open& newest) {
  line = base::trim(line);
  if (line.find_first_not_of("^~ ") == std::string_view::npos) {
    return;
  }
  Open* lacks = newest.source.empty() ? &newest : nullptr;
  for (Open& open : open_) {
    const bool newer = lacks == nullptr || (lacks != &newest && open.touched > lacks->touched);
    lacks = open.source.empty() && !open.frames.empty() && newer ? &open : lacks;
  }
  if (lacks != nullptr) {
    lacks->source = line;
  }
}

void Reader::read_line(std::size_t i, std::string_view line) {
  timed_out_ = timed_out_ || (stream_[i].rank && base::contains(line, kWatchdogTimeout));
  const auto message = pytest_message(line);
  if (message && !in_message_ && open_.empty() && !begins_traceback(line) &&
      ++messages_ <= kMostMessages) {
    in_message_ = true;
    end_pytest(i, *message);
    return;
  }
  in_message_ = message.has_value();
  line = message.value_or(line);
  std::erase_if(open_, [i](const Open& open) { return i - open.begun > kLongest; });
  if (begins_traceback(line)) {
    begin(i, line);
    return;
  }
  if (begin_remote(i, line)) {
    return;
  }
  const bool boxed = std::any_of(open_.begin(), open_.end(), [](auto& one) { return one.boxed; });
  auto frame = traceback_place(line);
  if (!frame && boxed) {
    frame = boxed_place(cut_, line);
    cut_ = !frame && line.starts_with('/') ? line : std::string_view();
  }
  if (frame) {
    add_frame(i, std::move(*frame), line);
    return;
  }
  if (chains_tracebacks(line)) {
    chained_ = !out_.empty();
    translated_ = chained_ && line.find("direct cause") != std::string_view::npos;
    return;
  }
  if (open_.empty() || base::trim(line).empty()) {
    return;
  }
  Open& newest = *std::max_element(open_.begin(), open_.end(), [](const Open& a, const Open& b) {
    return a.touched < b.touched;
  });
  const std::size_t indent = indentation(line);
  const bool below = indent > newest.base || line.starts_with("❱") || line.starts_with("╰");
  const EndLike likeness = below ? EndLike::kNo : end_like(line.substr(indent));
  if (likeness == EndLike::kYes && indent == newest.base) {
    end(i, line);
  } else if (below) {
    add_source(line.substr(0, kLongestSource), newest);
    newest.touched = newest.frames.empty() ? newest.touched : i;
  } else if (indent == newest.base && !newest.frames.empty() && !newest.no_heading &&
             ends_here(i, line, newest.base)) {
    end(i, line);
  }
}

}  // namespace

PytestFrames pytest_frames(const LogStream& stream, std::size_t index) {
  PytestFrames out;
  for (std::size_t k = index - std::min(index, kLongest); k < index; ++k) {
    const std::string_view line = stream[k].text;
    if (line.starts_with("____") || line.starts_with("====")) {
      out.frames.clear();
    } else if (auto frame = pytest_place(line); frame && out.frames.size() < kMostFrames) {
      out.frames.push_back(std::move(*frame));
    }
  }
  std::size_t below = index;
  while (below < stream.size() && below < index + kLongest &&
         (pytest_message(stream[below].text) || base::trim(stream[below].text).empty())) {
    ++below;
  }
  const std::string_view line = below < stream.size() ? stream[below].text : std::string_view();
  if (auto frame = pytest_place(line); frame && frame->function.empty()) {
    const std::string_view text = base::trim(line);
    out.exception = text.substr(text.rfind(':') + 1);
    out.exception = base::trim(std::string_view(out.exception));
    out.frames.push_back(std::move(*frame));
  }
  return out;
}

std::vector<Traceback> read_tracebacks(const LogStream& stream) {
  return Reader(stream).read();
}

}  // namespace ddpdoctor::detectors
