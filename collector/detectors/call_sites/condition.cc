// SPDX-License-Identifier: Apache-2.0
// What can be said of a condition by its words: for which ranks it holds, whether it can differ
// between ranks at all.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/call_sites/source_path.h"

namespace ddpdoctor::detectors {
namespace {

// Names that have one value on all ranks: counters of the loop, options of the run, what Python
// says of itself.
constexpr std::array<std::string_view, 48> kUniformNames = {"step",
                                                            "steps",
                                                            "i",
                                                            "it",
                                                            "iter",
                                                            "iteration",
                                                            "epoch",
                                                            "epochs",
                                                            "batch_idx",
                                                            "batch_id",
                                                            "idx",
                                                            "global_step",
                                                            "args",
                                                            "cfg",
                                                            "config",
                                                            "opt",
                                                            "options",
                                                            "self",
                                                            "hparams",
                                                            "params",
                                                            "training",
                                                            "train",
                                                            "n",
                                                            "num_epochs",
                                                            "max_steps",
                                                            "log_every",
                                                            "interval",
                                                            "log_interval",
                                                            "eval_every",
                                                            "save_every",
                                                            "None",
                                                            "True",
                                                            "False",
                                                            "and",
                                                            "or",
                                                            "not",
                                                            "is",
                                                            "in",
                                                            "len",
                                                            "world_size",
                                                            "get_world_size",
                                                            "dist",
                                                            "torch",
                                                            "__name__",
                                                            "__debug__",
                                                            "TYPE_CHECKING",
                                                            "sys",
                                                            "distributed"};

bool is_uniform_name(std::string_view word) {
  return std::find(kUniformNames.begin(), kUniformNames.end(), word) != kUniformNames.end() ||
         word.ends_with("_every") || word.ends_with("_interval") || word.ends_with("_steps") ||
         word.ends_with("_freq") || word.starts_with("do_") || word.ends_with("_epochs");
}

// "step % self.every": what counts are divided by is an option, whatever its name.
std::size_t end_of_interval(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && text[end] == ' ') {
    ++end;
  }
  while (end < text.size() && (base::is_word(text[end]) || text[end] == '.')) {
    ++end;
  }
  return end < text.size() && text[end] == '(' ? from : end;
}

// Words outside of quotes; an attribute belongs to its object ("args.resume" is args), that of self
// speaks for itself.
std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      quote = text[i] == quote ? '\0' : quote;
      continue;
    }
    if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
      continue;
    }
    if (text[i] == '%') {
      i = end_of_interval(text, i + 1) - 1;
      continue;
    }
    if (!base::is_word(text[i])) {
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && base::is_word(text[end])) {
      ++end;
    }
    const std::string_view word = text.substr(i, end - i);
    const bool of_self = i >= 5 && text.substr(i - 5, 5) == "self.";
    const bool attribute = i > 0 && text[i - 1] == '.' && !of_self;
    if (!attribute && std::isdigit(static_cast<unsigned char>(word.front())) == 0) {
      names.push_back(word);
    }
    i = end - 1;
  }
  return names;
}

// "val_loader is not None" asks for an option, not for data.
std::string without_none_tests(std::string_view text) {
  std::string result(text);
  for (const std::string_view test : {" is not None", " is None"}) {
    for (std::size_t at = result.find(test); at != std::string::npos; at = result.find(test)) {
      std::size_t start = at;
      while (start > 0 && (base::is_word(result[start - 1]) || result[start - 1] == '.')) {
        --start;
      }
      result.replace(start, at + test.size() - start, "True");
    }
  }
  return result;
}

struct Comparison {
  std::string_view left;
  std::string_view sign;
  std::string_view right;
};

std::optional<Comparison> only_comparison(std::string_view text) {
  for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"}) {
    const std::size_t at = text.find(sign);
    if (at != std::string_view::npos) {
      return Comparison{.left = base::trim(text.substr(0, at)),
                        .sign = sign,
                        .right = base::trim(text.substr(at + sign.size()))};
    }
  }
  return std::nullopt;
}

bool compare(long long left, std::string_view sign, long long right) {
  if (sign == "==") {
    return left == right;
  }
  if (sign == "!=") {
    return left != right;
  }
  if (sign == "<=") {
    return left <= right;
  }
  if (sign == ">=") {
    return left >= right;
  }
  return sign == "<" ? left < right : left > right;
}

bool names_the_rank(std::string_view text) {
  if (text.find(' ') != std::string_view::npos) {
    return false;  // "not rank"
  }
  return text.ends_with("rank") || text.ends_with("rank()") || text == "RANK";
}

/// "(0, 1)", "[0]", "{2, 3}", "range(2)", "range(2, 4)" hold this number; nullopt for anything but
/// numbers.
std::optional<bool> is_among(std::string_view list, long long number) {
  constexpr std::string_view kRange = "range(";
  const bool range = list.starts_with(kRange);
  constexpr std::string_view kClosing = ")]}";
  if (list.size() < 2 || kClosing.find(list.back()) == kClosing.npos ||
      (!range && std::string_view("([{").find(list.front()) == list.npos)) {
    return std::nullopt;
  }
  list = list.substr(range ? kRange.size() : 1);
  list.remove_suffix(1);
  std::vector<long long> numbers;
  for (const std::string_view word : base::split(list, ',')) {
    const std::string_view item = base::trim(word);
    long long value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (item.empty() && !numbers.empty()) {
      continue;  // "(0,)"
    }
    if (error != std::errc() || end != item.data() + item.size()) {
      return std::nullopt;
    }
    numbers.push_back(value);
  }
  if (!range) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  }
  if (numbers.empty() || numbers.size() > 2) {
    return std::nullopt;
  }
  const long long first = numbers.size() == 1 ? 0 : numbers.front();
  return number >= first && number < numbers.back();
}

/// "rank in (0, 1)", "rank not in [0]".
std::optional<bool> membership(std::string_view condition, model::Rank rank) {
  const std::size_t negated = condition.find(" not in ");
  const std::size_t at = negated != condition.npos ? negated : condition.find(" in ");
  if (at == condition.npos || !names_the_rank(base::trim(condition.substr(0, at)))) {
    return std::nullopt;
  }
  const std::size_t words = negated != condition.npos ? 8 : 4;
  const auto among = is_among(base::trim(condition.substr(at + words)), rank);
  return among ? std::optional(*among != (negated != condition.npos)) : std::nullopt;
}

}  // namespace

std::optional<bool> holds_for(std::string_view condition, model::Rank rank) {
  condition = base::trim(condition);
  if (condition.find(" and ") != std::string_view::npos ||
      condition.find(" or ") != std::string_view::npos) {
    return std::nullopt;
  }
  const auto comparison = only_comparison(condition);
  if (!comparison) {
    return membership(condition, rank);
  }
  if (!names_the_rank(comparison->left)) {
    return std::nullopt;
  }
  long long value = 0;
  const std::string_view right = comparison->right;
  const auto [end, error] = std::from_chars(right.data(), right.data() + right.size(), value);
  if (error != std::errc() || end != right.data() + right.size()) {
    return std::nullopt;
  }
  return compare(rank, comparison->sign, value);
}

bool reads_data(std::string_view condition) {
  constexpr std::array<std::string_view, 27> kReads = {
      ".item(", ".any(",    ".all(",    ".sum(",     ".max(",    ".min(",   ".mean(",
      "isnan",  "isfinite", "exists",   "random",    "time",     "loss",    "metric",
      "score",  "best",     "elapsed",  "deadline",  "now -",    "- now",   "isinf",
      "stop",   "nan",      "patience", "converged", "accuracy", "improved"};
  return std::any_of(kReads.begin(), kReads.end(), [condition](std::string_view read) {
    return condition.find(read) != std::string_view::npos;
  });
}

bool is_uniform(std::string_view condition) {
  const std::string text = without_none_tests(condition);
  if (reads_data(text)) {
    return false;
  }
  const std::vector<std::string_view> names = names_in(text);
  return std::all_of(names.begin(), names.end(), is_uniform_name);
}

}  // namespace ddpdoctor::detectors
