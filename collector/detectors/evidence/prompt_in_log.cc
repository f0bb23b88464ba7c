// SPDX-License-Identifier: Apache-2.0
// A question is often written without an end of line and stays in a buffer: then the menu above it
// is the end of the log.
#include "collector/detectors/evidence/prompt_in_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

using std::string_view;

constexpr std::size_t kMostLinesOfMenu = 64;  // several ranks may each print it
constexpr std::size_t kLongestPrompt = 200;
constexpr int kMostChoices = 20;

/// 2 of "(2) Use an existing account" and "wandb: (2) Use …"; nothing for other lines.
std::optional<int> choice_in(string_view line) {
  line = base::trim(line);
  const std::size_t colon = line.find(": (");
  const std::size_t word = line.find(' ');
  if (!line.starts_with('(') && colon != line.npos && colon < word) {
    line.remove_prefix(colon + 2);
  }
  if (!line.starts_with('(')) {
    return std::nullopt;
  }
  int number = 0;
  std::size_t at = 1;
  for (; at < line.size() && std::isdigit(static_cast<unsigned char>(line[at])) != 0; ++at) {
    number = std::min(number * 10 + (line[at] - '0'), kMostChoices + 1);
  }
  const bool item = at > 1 && line.substr(at).starts_with(") ") && number <= kMostChoices;
  return item ? std::optional(number) : std::nullopt;
}

/// A question that one key answers, or that asks for a secret.
bool asks_person(string_view line) {
  constexpr std::array<string_view, 7> kAnswers = {"[y/n]",     "(y/n)",    "([y]/n)", "(yes/no)",
                                                   "(yes/no/[", "[yes/no]", "[y/n/"};
  constexpr std::array<string_view, 4> kSecrets = {"password:", "password for ", "passphrase for ",
                                                   "username for "};
  const std::string lower = base::lower(base::trim(line).substr(0, kLongestPrompt));
  const bool secret = base::contains_any(lower, kSecrets) && lower.ends_with(':');
  const std::size_t tail = lower.size() - std::min<std::size_t>(lower.size(), 40);
  return secret || base::contains_any(string_view(lower).substr(tail), kAnswers);
}

/// The index of the last line that is not empty.
std::optional<std::size_t> last_line(const LogStream& stream) {
  for (std::size_t i = stream.size(); i-- > 0;) {
    if (!base::trim(stream[i].text).empty()) {
      return i;
    }
  }
  return std::nullopt;
}

/// The line ends a menu: choices from 1 to its own number are shortly above.
bool ends_menu(const LogStream& stream, std::size_t last) {
  const auto newest = choice_in(stream[last].text);
  if (!newest || *newest < 2) {
    return false;
  }
  std::set<int> seen;
  for (std::size_t i = last + 1; i-- > 0 && last - i < kMostLinesOfMenu;) {
    const auto choice = choice_in(stream[i].text);
    if (!choice) {
      break;
    }
    seen.insert(*choice);
  }
  return static_cast<int>(seen.size()) == *seen.rbegin() && *seen.begin() == 1;
}

/// "Enter your choice:" below a menu.
bool asks_below_menu(const LogStream& stream, std::size_t last) {
  const string_view text = base::trim(stream[last].text);
  return last > 0 && !text.empty() && string_view(":?>").find(text.back()) != text.npos &&
         text.size() <= kLongestPrompt && ends_menu(stream, last - 1);
}

/// "Enter your choice:" of "Enter your choice: wandb: (1) Create an account": the menu of another
/// process follows the question of the one before.
string_view question_before_menu(string_view line) {
  constexpr string_view kFirst = ": (1) ";
  const std::size_t menu = line.find(kFirst);
  const string_view before = line.substr(0, menu == line.npos ? 0 : menu);
  const std::size_t colon = before.rfind(": ");
  return colon == before.npos ? string_view() : base::trim(before.substr(0, colon + 1));
}

/// How many processes still wait for an answer to this question: each answer stands behind its
/// question, up to the end of the line. 0 unless several menus were asked about with it, and one
/// was answered: other texts have the same form.
std::size_t unanswered(const LogStream& stream, string_view question) {
  std::size_t menus = 0;
  std::size_t asked = 0;
  std::size_t answered = 0;
  for (const LogLine& line : stream) {
    const string_view text = line.text;
    menus += text.find("(1) ") != text.npos ? 1 : 0;
    for (std::size_t at = text.find(question); at != text.npos;
         at = text.find(question, at + question.size())) {
      const string_view behind = base::trim(text.substr(at + question.size()));
      ++asked;
      answered += !behind.empty() && behind.find("(1) ") == behind.npos ? 1 : 0;
    }
  }
  return asked == menus && answered > 0 ? asked - answered : 0;
}

Finding question_of(const LogLine& line, string_view kind) {
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kPossible;
  if (line.rank) {
    finding.culprits.insert(*line.rank);
  }
  const bool wandb = base::trim(line.text).starts_with("wandb:");
  finding.summary =
      fmt::format("{} is waiting for a person: its log ends in a question{}",
                  finding.culprits.empty() ? std::string("a process") : said(finding.culprits),
                  wandb ? " of wandb" : "");
  finding.evidence.push_back(
      {.rank = line.rank, .text = "log: " + base::elide(base::printable(line.text), 200)});
  finding.fix =
      wandb ? "Set WANDB_API_KEY (or run `wandb login` on every node), or set WANDB_MODE=offline."
            : "Answer it before the job: pass the option or the environment variable that the "
              "program has for it. With `< /dev/null` it fails instead of waiting.";
  return finding;
}

/// Several processes asked the same question in one terminal, and not all of them were answered.
std::optional<Finding> half_answered(const LogStream& stream, string_view kind) {
  constexpr std::size_t kMostQuestions = 8;
  std::set<string_view> known;
  for (const LogLine& line : stream) {
    const string_view question = question_before_menu(line.text);
    if (question.empty() || known.size() >= kMostQuestions || !known.insert(question).second) {
      continue;
    }
    const std::size_t waiting = unanswered(stream, question);
    if (waiting > 0) {
      Finding finding = question_of(line, kind);
      finding.summary =
          fmt::format("{} of several processes that asked `{}` {} waiting for an answer", waiting,
                      base::printable(question), waiting == 1 ? "is" : "are");
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace

Findings prompts_in_logs(const graph::Examination& examination, string_view kind) {
  Findings out;
  if (examination.job.progress == model::Progress::kMoving) {
    return out;
  }
  std::set<std::size_t> asked;  // logs
  for (const LogStream& stream : log_streams(examination.job)) {
    const auto last = last_line(stream);
    const bool asks = last && (asks_person(stream[*last].text) || ends_menu(stream, *last) ||
                               asks_below_menu(stream, *last));
    if (asks && asked.insert(stream[*last].log).second) {
      out.push_back(question_of(stream[*last], kind));
    }
  }
  for (const LogStream& stream :
       out.empty() ? log_streams(examination.job) : std::vector<LogStream>()) {
    if (auto waiting = half_answered(stream, kind)) {
      return {*std::move(waiting)};
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
