// SPDX-License-Identifier: Apache-2.0
// The loop that some ranks have left while the others are still in it, and what led out of it.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/call_sites/fixed_loop.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/detectors/call_sites/source_path.h"
#include "collector/detectors/call_sites/ways_out.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using python_source::Block;
using python_source::BlockKind;
using python_source::DataEnd;
using python_source::Dependence;
using python_source::Lines;

constexpr std::array<std::string_view, 14> kKeyWords = {
    ".items(", ".keys(",  ".values(",    "keys",    "names", "metrics",      "losses",
    "dict",    "tensors", "parameters(", "buckets", "stats", "_parameters(", "fields"};
constexpr std::array<std::string_view, 13> kBatchWords = {
    "loader",  "dataset", "batch",    "range(", "epoch",    "step", "shard",
    "sampler", "tqdm",    "iterator", "data",   "prefetch", "next("};

template <typename Words>
bool mentions(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

/// "for work in works": what was collected in a list just above, one by one.
bool goes_over_own_list(const Lines& lines, const Block& loop) {
  constexpr int kAbove = 40;  // lines
  const std::size_t in = loop.text.find(" in ");
  std::string name = in == std::string::npos ? std::string() : loop.text.substr(in + 4);
  name = name.substr(0, name.find_first_of(" :("));
  if (name.empty() || name.find('.') != std::string::npos) {
    return false;
  }
  for (auto line = lines.lower_bound(loop.line - kAbove);
       line != lines.end() && line->first < loop.line; ++line) {
    const std::string_view code = base::trim(line->second);
    for (const std::string_view made : {" = []", " = {}", " = list()", " = dict()"}) {
      if (code == name + std::string(made)) {
        return true;
      }
    }
  }
  return false;
}

/// "k", "name", "value": what a loop gives a name to.
std::vector<std::string> variables_of(const Block& loop) {
  std::vector<std::string> names;
  std::string name;
  const std::size_t end = loop.text.find(" in ");
  for (std::size_t at = loop.text.find("for ") + 4; end != std::string::npos && at <= end; ++at) {
    if (base::is_word(loop.text[at])) {
      name += loop.text[at];
    } else if (!name.empty()) {
      names.push_back(std::move(name));
      name.clear();
    }
  }
  return names;
}

bool is_named(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t behind = at + name.size();
    if ((at == 0 || !base::is_word(text[at - 1])) &&
        (behind == text.size() || !base::is_word(text[behind]))) {
      return true;
    }
  }
  return false;
}

/// `dist.all_reduce(out[k])` in `for k in …`: one call for each element, not for each step.
bool calls_for_each(const Lines& lines, const Block& loop, int line, bool by_key) {
  constexpr std::array<std::string_view, 6> kCalls = {"reduce", "gather",  "broadcast",
                                                      "sync",   "average", "scatter"};
  const std::string statement = python_source::statement_at(lines, line);
  const std::vector<std::string> names = variables_of(loop);
  return mentions(statement, kCalls) &&
         std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return by_key ? statement.find("[" + name + "]") != std::string::npos
                         : is_named(statement, name);
         });
}

/// `line`: where the loop's ranks are in it.
bool goes_over_keys(const Lines& lines, const Block& loop, int line) {
  constexpr std::array<std::string_view, 4> kOfMaps = {"sorted(", ".items(", ".keys(", ".values("};
  constexpr std::array<std::string_view, 7> kOfInputs = {"loader", "dataset",  "range(",  "sampler",
                                                         "tqdm",   "iterator", "prefetch"};
  if (loop.kind != BlockKind::kFor) {
    return false;
  }
  if (!mentions(loop.text, kBatchWords)) {
    return mentions(loop.text, kKeyWords) || goes_over_own_list(lines, loop) ||
           calls_for_each(lines, loop, line, false);
  }
  // "for k in sorted(batch_stats)"; files of a data set may be sorted, too
  return !mentions(loop.text, kOfInputs) &&
         calls_for_each(lines, loop, line, !mentions(loop.text, kOfMaps));
}

// "if not isfinite(loss): continue" before the call: a rank that skipped it once ends the loop one
// call short.
std::optional<Branch> skip_of(const Lines& lines, const Block& loop, const model::CallSite& in) {
  for (const Block& block : python_source::deciding_branches(lines, in.line)) {
    if (is_loop(block) || !encloses(lines, loop, block.line) || block.line == loop.line ||
        is_uniform(block.condition)) {
      continue;
    }
    const Dependence on = dependence_of(lines, block);
    const bool rank_alone = on == Dependence::kRank && names_a_rank(block.condition);
    if (rank_alone || (on != Dependence::kNone && reads_data(block.condition))) {
      return branch_of(block, in, rank_alone ? on : Dependence::kData, true);
    }
  }
  return std::nullopt;
}

// "if not found_inf: for p in parameters: …": who did not enter the loop has not left it either.
std::optional<Branch> guard_of(const Lines& lines, const Block& loop, const model::CallSite& in) {
  for (const Block& block : python_source::enclosing(lines, loop.line)) {
    const bool guards =
        (block.kind == BlockKind::kIf || block.kind == BlockKind::kElif) && block.line != loop.line;
    if (guards && !is_uniform(block.condition) &&
        dependence_of(lines, block) == Dependence::kData) {
      return branch_of(block, in, Dependence::kData, false);
    }
    if (is_loop(block) && block.line != loop.line) {
      break;
    }
  }
  return std::nullopt;
}

std::optional<Branch> parted_by(const Lines& lines, const Block& loop, const model::CallSite& in,
                                const std::optional<DataEnd>& end) {
  if (auto exit = way_out_of(lines, loop, in, end)) {
    return exit;
  }
  if (auto skip = skip_of(lines, loop, in)) {
    return skip;
  }
  return guard_of(lines, loop, in);
}

// "while True: chunk = next(stream)": what a loop goes over when its header does not say it.
std::string header_of(const Lines& lines, const Block& loop, const std::optional<DataEnd>& end) {
  constexpr std::size_t kLongest = 60;
  return !end || end->taken == loop.line
             ? loop.text
             : loop.text + ": " +
                   base::elide(python_source::statement_at(lines, end->taken), kLongest);
}

LeftLoop loop_of(const Lines& lines, const Block& loop, const model::CallSite& in, bool ours_left) {
  const std::optional<DataEnd> end = python_source::data_end_of(lines, loop.line);
  LeftLoop left{.where = {.file = in.file, .line = loop.line, .function = in.function},
                .header = header_of(lines, loop, end),
                .ours_left = ours_left,
                .over_keys = goes_over_keys(lines, loop, in.line),
                .way_out = parted_by(lines, loop, in, end)};
  left.fixed = !left.way_out && !end && is_fixed(lines, loop, in.line);
  return left;
}

// A loop around `in` that `out` is not in: `out` lies behind it, or both lie in a further loop.
std::optional<Block> loop_without(const Lines& lines, int in, int out) {
  std::optional<Block> found;
  bool shared_outer = false;
  for (const Block& block : python_source::enclosing(lines, in)) {
    if (!is_loop(block)) {
      continue;
    }
    if (encloses(lines, block, out) && out != block.line) {
      shared_outer = true;
      break;
    }
    found = found ? found : std::optional<Block>(block);
  }
  const bool behind = found && (out > in || shared_outer);
  return behind ? found : std::nullopt;
}

// What is as long on every rank, unless the loops around it are shared as well.
constexpr std::array<std::string_view, 3> kOfOneModel = {".parameters()", ".named_parameters()",
                                                         "param_groups"};

// All loops on the way were left: the innermost, or the one around it that a condition of the data
// leads out of, or that goes over more than the parameters of one model.
std::optional<LeftLoop> loop_below(const model::JobModel& job, const Path& below, bool ours_left) {
  std::optional<LeftLoop> found;
  for (const model::CallSite& site : below) {
    const Lines& lines = lines_of(job, site.file);
    if (const auto block = python_source::loop_around(lines, site.line)) {
      LeftLoop loop = loop_of(lines, *block, site, ours_left);
      const bool of_one_model = found && mentions(found->header, kOfOneModel);
      if (!found || (!found->way_out && (loop.way_out || of_one_model))) {
        found = std::move(loop);
      }
    }
  }
  return found;
}

// What ranks may go round differently in one round of a loop that they all go round equally often:
// a loop over batches below it, or one over names or over what a test lets through.
std::optional<LeftLoop> differing_inside(const model::JobModel& job, const Path& below,
                                         bool ours_left) {
  std::optional<LeftLoop> over_keys;
  for (const model::CallSite& site : below) {
    const Lines& lines = lines_of(job, site.file);
    for (const Block& block : python_source::enclosing(lines, site.line)) {
      if (!is_loop(block)) {
        continue;
      }
      LeftLoop loop = loop_of(lines, block, site, ours_left);
      const bool all_alike = block.text.find("parameters(") != std::string::npos &&
                             !is_filtered(lines, block, site.line);
      if (loop.over_keys && !over_keys && !all_alike) {
        over_keys = std::move(loop);
      } else if (!loop.fixed && is_over_batches(loop)) {
        loop.in_step = !mentions(loop.header, kBatchWords);
        return loop;
      }
    }
  }
  return over_keys;
}

// "trainer.fit().save()": one line calls both, the second after the first has returned.
bool are_chained(const model::JobModel& job, const Fork& fork) {
  const auto text = model::source_line(job, fork.ours.file, fork.ours.line);
  const auto calls = [&text](const Path& below) {
    if (!text || below.empty()) {
      return false;
    }
    const std::string& function = below.back().function;
    const std::size_t dot = function.rfind('.');
    return text->find((dot == std::string::npos ? function : function.substr(dot + 1)) + "(") !=
           std::string_view::npos;
  };
  return calls(fork.below_ours) && calls(fork.below_theirs);
}

}  // namespace

bool is_over_batches(const std::optional<LeftLoop>& loop) {
  return loop && !loop->over_keys && !loop->fixed &&
         (loop->way_out || mentions(loop->header, kBatchWords));
}

std::optional<LeftLoop> left_loop(const model::JobModel& job, const Fork& fork) {
  if (graph::same_line(fork.ours, fork.theirs)) {
    const bool chained = are_chained(job, fork);
    const auto theirs = chained ? loop_below(job, fork.below_theirs, true) : std::nullopt;
    const auto ours = chained ? loop_below(job, fork.below_ours, false) : std::nullopt;
    return theirs && ours ? std::nullopt : (theirs ? theirs : ours);
  }
  const Lines& lines = lines_of(job, fork.ours.file);
  for (const bool ours_left : {true, false}) {
    const model::CallSite& in = ours_left ? fork.theirs : fork.ours;
    const model::CallSite& out = ours_left ? fork.ours : fork.theirs;
    const auto block = loop_without(lines, in.line, out.line);
    if (!block) {
      continue;
    }
    LeftLoop loop = loop_of(lines, *block, in, ours_left);
    const Path& below = ours_left ? fork.below_theirs : fork.below_ours;
    auto inside = loop.fixed ? differing_inside(job, below, ours_left) : std::nullopt;
    return inside ? std::move(inside) : std::optional(std::move(loop));
  }
  // Both may be in loops of their own functions: who stands further down has left the other's.
  const auto around_theirs = loop_below(job, fork.below_theirs, true);
  const auto around_ours = loop_below(job, fork.below_ours, false);
  if (around_theirs && around_ours) {
    return fork.ours.line > fork.theirs.line ? around_theirs : around_ours;
  }
  return around_theirs ? around_theirs : around_ours;
}

std::optional<LeftLoop> loop_left_with(const model::JobModel& job, const Fork& fork,
                                       const LeftLoop& inner, BegunAnew begun) {
  const Path& below = inner.ours_left ? fork.below_theirs : fork.below_ours;
  const auto called = std::find_if(below.begin(), below.end(), [&inner](const auto& site) {
    return site.file == inner.where.file && site.function == inner.where.function;
  });
  const model::CallSite& at_fork = inner.ours_left ? fork.theirs : fork.ours;
  const model::CallSite& in = called == below.end() ? at_fork : *called;
  const model::CallSite& out = inner.ours_left ? fork.ours : fork.theirs;
  const Lines& lines = lines_of(job, in.file);
  if (in.file != inner.where.file) {
    return std::nullopt;
  }
  for (const Block& block : python_source::enclosing(lines, inner.where.line)) {
    if (!is_loop(block) || block.line == inner.where.line) {
      continue;
    }
    if (out.file == in.file && encloses(lines, block, out.line)) {
      break;
    }
    const auto exit = way_out_of(lines, block, in, python_source::data_end_of(lines, block.line));
    const bool by_data = exit && exit->on == Dependence::kData &&
                         (begun == BegunAnew::kProbably || reads_data(exit->condition) ||
                          is_stop_flag(exit->condition));
    if (begun == BegunAnew::kCertainly || by_data) {
      return LeftLoop{.where = {.file = in.file, .line = block.line, .function = in.function},
                      .header = block.text,
                      .ours_left = inner.ours_left,
                      .way_out = exit};
    }
  }
  return std::nullopt;
}

std::optional<LeftLoop> loop_of_calls(const model::JobModel& job, const Fork& fork, bool of_ours) {
  const model::CallSite& in = of_ours ? fork.ours : fork.theirs;
  const model::CallSite& out = of_ours ? fork.theirs : fork.ours;
  if (auto below = loop_below(job, of_ours ? fork.below_ours : fork.below_theirs, !of_ours)) {
    return below;
  }
  const Lines& lines = lines_of(job, in.file);
  const auto block = python_source::loop_around(lines, in.line);
  return block && !encloses(lines, *block, out.line)
             ? std::optional(loop_of(lines, *block, in, !of_ours))
             : std::nullopt;
}

bool stands_in_left_loop(const model::JobModel& job, const Fork& fork, const Branch& branch) {
  const auto loop = left_loop(job, fork);
  if (!loop || loop->way_out || loop->ours_left == branch.leads_to_ours ||
      loop->where.file != branch.where.file || loop->where.line >= branch.where.line) {
    return false;
  }
  const Lines& lines = lines_of(job, branch.where.file);
  const std::vector<Block> around = python_source::enclosing(lines, branch.where.line);
  return std::any_of(around.begin(), around.end(),
                     [&loop](const Block& block) { return block.line == loop->where.line; });
}

}  // namespace ddpdoctor::detectors
