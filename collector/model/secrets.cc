// SPDX-License-Identifier: Apache-2.0
#include "collector/model/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "base/text.h"

namespace ddpdoctor::model {
namespace {

using std::string_view;

constexpr string_view kHidden = "…";
constexpr std::size_t kLongestName = 64;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_upper(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}
bool is_lower(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0;
}
bool is_name(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.';
}
bool is_token(char c) {
  return is_alnum(c) || c == '_' || c == '-';
}
bool is_quote(char c) {
  return c == '"' || c == '\'';
}

template <std::size_t N>
bool holds_any(string_view text, const std::array<string_view, N>& parts) {
  return base::contains_any(text, parts);
}

/// Normalizes names for comparison: upper case, with one separator between words.
std::string folded(string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c == '-' || c == '.' ? '_'
                                : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return out;
}

/// In logs, many harmless things are named key or token (key=3, pad_token=0): only names of
/// environment variables and unambiguous names count there.
bool is_secret_in_text(string_view name) {
  constexpr std::array<string_view, 14> kPlain = {
      "PASSWORD",  "PASSWD",       "PASSPHRASE",    "SECRET",     "CREDENTIAL",
      "API_KEY",   "APIKEY",       "ACCESS_KEY",    "AUTH_TOKEN", "PRIVATE_KEY",
      "API_TOKEN", "ACCESS_TOKEN", "REFRESH_TOKEN", "HF_TOKEN"};
  return holds_any(folded(name), kPlain) ||
         (std::none_of(name.begin(), name.end(), is_lower) && name.find('_') != string_view::npos &&
          is_secret(name));
}

std::size_t end_of(string_view text, std::size_t at, bool (*belongs)(char)) {
  while (at < text.size() && belongs(text[at])) {
    ++at;
  }
  return at;
}

std::size_t end_of_value(string_view text, std::size_t at) {
  if (at < text.size() && is_quote(text[at])) {
    return std::min(text.find(text[at], at + 1), text.size());
  }
  return std::min(text.find_first_of(" \t\r\n\"'`;,&|)]}", at), text.size());
}

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// NAME=value, "name": "value", --name=value; `at` is the separator.
Span named_value(string_view text, std::size_t at) {
  std::size_t end = at;
  if (end > 0 && is_quote(text[end - 1])) {
    --end;
  } else if (text[at] == ':') {
    return {};  // `KeyError: 3` and `secret: none` are prose
  }
  std::size_t begin = end;
  while (begin > 0 && end - begin < kLongestName && is_name(text[begin - 1])) {
    --begin;
  }
  const string_view name = text.substr(begin, end - begin);
  if (!(name.starts_with("--") ? is_secret(name) : is_secret_in_text(name))) {
    return {};
  }
  std::size_t value = at + 1;
  if (text[at] == ':') {
    value = end_of(text, value, is_space);
  }
  if (value < text.size() && is_quote(text[value])) {
    return {value + 1, end_of_value(text, value)};
  }
  return {value, end_of_value(text, value)};
}

/// `--hf-token abc` in a shell command, `'--hf-token', 'abc'` in a list; `at` is the first dash.
Span option_value(string_view text, std::size_t at) {
  const std::size_t end = end_of(text, at, is_name);
  const std::size_t value =
      end_of(text, end, [](char c) { return is_space(c) || is_quote(c) || c == ','; });
  if (!text.substr(at).starts_with("--") || value == end || value == text.size() ||
      text[value] == '-' || !is_secret(text.substr(at, end - at))) {
    return {};
  }
  return {value, end_of_value(text, value)};
}

/// scheme://user:password@host; `at` is the offset after the slashes.
Span url_password(string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_of("/?# \t\r\n\"'`<>", at), text.size());
  const string_view authority = text.substr(at, end - at);
  const std::size_t sign = authority.rfind('@');
  if (sign == string_view::npos) {
    return {};
  }
  const std::size_t colon = authority.find(':');
  if (colon < sign) {
    return {at + colon + 1, at + sign};
  }
  const string_view before = text.substr(0, at - 3);
  const bool web = before.ends_with("http") || before.ends_with("https");
  return web ? Span{at, at + sign} : Span{};  // git@host contains no secret
}

/// Tokens of services: a prefix and at least this many letters and digits after it.
struct Shape {
  string_view beginning;
  std::size_t least;
};
constexpr std::array<Shape, 19> kShapes = {{{"ghp_", 20},
                                            {"gho_", 20},
                                            {"ghu_", 20},
                                            {"ghs_", 20},
                                            {"ghr_", 20},
                                            {"hf_", 30},
                                            {"github_pat_", 20},
                                            {"glpat-", 16},
                                            {"AKIA", 16},
                                            {"ASIA", 16},
                                            {"AIza", 30},
                                            {"xoxb-", 10},
                                            {"xoxp-", 10},
                                            {"xoxa-", 10},
                                            {"xoxs-", 10},
                                            {"npm_", 30},
                                            {"pypi-", 40},
                                            {"dckr_pat_", 20},
                                            {"sk-", 32}}};

/// `word` starts at a word boundary.
bool is_json_web_token(string_view word) {
  constexpr std::size_t kLeast = 30;
  return word.starts_with("eyJ") && word.size() >= kLeast &&
         std::count(word.begin(), word.end(), '.') == 2;
}

Span shaped(string_view text, std::size_t at) {
  const std::size_t end = end_of(text, at, is_token);
  const string_view word = text.substr(at, end - at);
  const bool mixed = std::any_of(word.begin(), word.end(), is_digit) ||
                     std::any_of(word.begin(), word.end(), is_upper);
  for (const auto& [beginning, least] : kShapes) {
    if (mixed && word.starts_with(beginning) && word.size() >= beginning.size() + least) {
      return {at, end};
    }
  }
  const std::size_t dotted = end_of(text, at, [](char c) { return is_token(c) || c == '.'; });
  return is_json_web_token(text.substr(at, dotted - at)) ? Span{at, dotted} : Span{};
}

/// Authorization: Bearer abc; `at` is at the B.
Span bearer(string_view text, std::size_t at) {
  constexpr string_view kWord = "Bearer ";
  constexpr std::size_t kLeast = 8;
  if (!text.substr(at).starts_with(kWord)) {
    return {};
  }
  const std::size_t begin = at + kWord.size();
  const std::size_t end = end_of_value(text, begin);
  return end >= begin + kLeast ? Span{begin, end} : Span{};
}

Span secret_at(string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '=' || c == ':') {
    if (const Span found = named_value(text, at); found.end > found.begin) {
      return found;
    }
    return text.substr(at).starts_with("://") ? url_password(text, at + 3) : Span{};
  }
  if (at > 0 && is_name(text[at - 1])) {
    return {};  // inside a word
  }
  if (c == '-') {
    return option_value(text, at);
  }
  if (const Span found = is_alnum(c) ? shaped(text, at) : Span{}; found.end > found.begin) {
    return found;
  }
  return c == 'B' ? bearer(text, at) : Span{};
}

}  // namespace

bool is_secret(std::string_view name) {
  constexpr std::array<string_view, 9> kParts = {
      "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY", "COOKIE", "PASSPHRASE", "JWT"};
  const std::string wanted = folded(name);
  return !wanted.starts_with("TOKENIZER") && holds_any(wanted, kParts);
}

std::string without_secrets(std::string_view text) {
  std::string out;
  std::size_t written = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Span found = secret_at(text, at);
    if (found.end > found.begin && found.begin >= written) {
      out.append(text.substr(written, found.begin - written)).append(kHidden);
      written = found.end;
      at = found.end - 1;
    }
  }
  return out.append(text.substr(written));
}

std::vector<std::string> public_command(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  bool hide_next = false;
  for (const std::string& word : command) {
    const bool option = word.starts_with("-");
    const std::size_t equals = word.find('=');
    const bool one_word = word.find_first_of(" \t\n") == std::string::npos;
    const bool secret = one_word && is_secret(std::string_view(word).substr(0, equals)) &&
                        (option || (equals != std::string::npos && word.find('/') > equals));
    if (hide_next && !option) {
      out.emplace_back(kHidden);
    } else if (secret && equals != std::string::npos) {
      out.push_back(word.substr(0, equals + 1).append(kHidden));
    } else {
      out.push_back(without_secrets(word));
    }
    hide_next = option && secret && equals == std::string::npos;
  }
  return out;
}

}  // namespace ddpdoctor::model
