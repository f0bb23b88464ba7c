// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/demangle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

#include "base/text.h"
#include "base/word.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxMangled = 16384;
constexpr std::size_t kMaxName = 200;

/// Index after the bracket that closes the one at `open`; the end of the text if there is none.
/// Relevant names have no arrows or operators inside template arguments.
std::size_t after_group(std::string_view text, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '(' || letter == '<' || letter == '{' || letter == '[') {
      ++depth;
    } else if (letter == ')' || letter == '}' || letter == ']' ||
               (letter == '>' && (i == 0 || text[i - 1] != '-'))) {
      if (--depth == 0) {
        return i + 1;
      }
    }
  }
  return text.size();
}

bool ends_with_operator(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  return name.ends_with(kOperator) && (name.size() == kOperator.size() ||
                                       !base::is_word(name[name.size() - kOperator.size() - 1]));
}

/// Scans a demangled name once and keeps the parts that name the function.
class Folder {
 public:
  explicit Folder(std::string_view text) : text_(text) {}

  std::string fold() {
    while (at_ < text_.size()) {
      step();
    }
    return std::move(name_);
  }

 private:
  void step();
  void blank();
  void operator_symbol();
  bool accept(std::string_view what, std::string_view as);

  std::string_view text_;
  std::size_t at_ = 0;
  std::string name_;
  bool after_parameters_ = false;
};

bool Folder::accept(std::string_view what, std::string_view as) {
  if (!text_.substr(at_).starts_with(what)) {
    return false;
  }
  name_ += as;
  at_ += what.size();
  return true;
}

void Folder::operator_symbol() {
  if (accept("()", "()")) {
    return;
  }
  while (at_ < text_.size() && text_[at_] != '(' && text_[at_] != ' ' &&
         !base::is_word(text_[at_])) {
    name_ += text_[at_++];
  }
  if (text_.substr(at_).starts_with(" <")) {
    ++at_;  // "operator< <int>"
  }
}

/// A blank ends a return type, precedes a qualifier (const, &, [clone …]), or belongs to "operator
/// bool".
void Folder::blank() {
  ++at_;
  if (ends_with_operator(name_)) {
    if (at_ < text_.size() && base::is_word(text_[at_])) {
      name_ += ' ';
    }
    return;
  }
  const std::string_view rest = text_.substr(at_);
  constexpr std::array<std::string_view, 6> kQualifiers{"const", "volatile", "noexcept",
                                                        "&",     "[",        "requires"};
  const bool qualifier =
      std::any_of(kQualifiers.begin(), kQualifiers.end(),
                  [rest](std::string_view one) { return rest.starts_with(one); });
  if (!after_parameters_ || !qualifier) {
    name_.clear();
    after_parameters_ = false;
    return;
  }
  // Skips to the next blank or to "::", after which a local entity of the function follows.
  while (at_ < text_.size() && text_[at_] != ' ' && !text_.substr(at_).starts_with("::")) {
    at_ = text_[at_] == '[' ? after_group(text_, at_) : at_ + 1;
  }
}

void Folder::step() {
  const char letter = text_[at_];
  if (letter != ' ' && ends_with_operator(name_) && !base::is_word(letter)) {
    operator_symbol();
    return;
  }
  if (accept("(anonymous namespace)", "(anonymous)") || accept("{lambda(", "{lambda}") ||
      accept("{unnamed type#", "{unnamed}")) {
    if (name_.ends_with('}')) {
      at_ = after_group(text_, text_.rfind('{', at_ - 1));
    }
    return;
  }
  if (accept("std::__cxx11::", "std::") || accept("std::__1::", "std::")) {
    return;
  }
  if (letter == ' ') {
    blank();
  } else if (letter == '<' || letter == '[' || letter == '(') {
    at_ = after_group(text_, at_);
    after_parameters_ = after_parameters_ || (letter == '(' && !name_.empty());
  } else {
    name_ += letter;
    ++at_;
  }
}

/// What a pybind11 binding wraps: the class of the bound method, or the function that defines the
/// binding.
std::string bound_name(std::string_view demangled) {
  constexpr std::string_view kMember = "::*)";
  constexpr std::string_view kInitialize = "initialize<";
  const std::size_t member = demangled.find(kMember);
  if (member != std::string_view::npos) {
    const std::size_t open = demangled.rfind('(', member);
    return open == std::string_view::npos
               ? ""
               : folded_name(demangled.substr(open + 1, member - open - 1));
  }
  const std::size_t begin = demangled.find(kInitialize);
  if (begin == std::string_view::npos) {
    return {};
  }
  std::string_view inside = demangled.substr(begin + kInitialize.size());
  inside = inside.substr(0, inside.find("::{lambda"));
  return folded_name(inside);
}

/// foo.cold, foo.part.0.isra.1 → foo: the compiler splits a function into such parts.
std::string_view without_clone(std::string_view name) {
  constexpr std::array<std::string_view, 7> kClones{
      ".cold", ".part", ".isra", ".constprop", ".lto_priv", ".localalias", ".llvm"};
  std::size_t end = name.size();
  for (const std::string_view clone : kClones) {
    const std::size_t at = name.find(clone);
    end = at == std::string_view::npos || at == 0 ? end : std::min(end, at);
  }
  return name.substr(0, end);
}

/// The nested name at the front of a mangled one whose end was cut off ("_ZN2at6native4copyILi5…":
/// at::native::copy); empty if there is none.
std::string name_in(std::string_view mangled) {
  if (!mangled.starts_with("_ZN")) {
    return {};
  }
  mangled.remove_prefix(3);
  std::string name;
  std::size_t length = 0;
  while (!mangled.empty()) {
    const auto [end, error] =
        std::from_chars(mangled.data(), mangled.data() + mangled.size(), length);
    const auto digits = static_cast<std::size_t>(end - mangled.data());
    if (error != std::errc{} || length == 0 || length > mangled.size() - digits) {
      break;
    }
    const std::string_view part = mangled.substr(digits, length);
    name += name.empty() ? "" : "::";
    name += part.find("_GLOBAL__N") == part.npos ? part : std::string_view("(anonymous)");
    mangled.remove_prefix(digits + length);
  }
  return name;
}

}  // namespace

std::string folded_name(std::string_view demangled) {
  constexpr std::string_view kBinding = "pybind11::cpp_function::initialize<";
  constexpr std::string_view kConstructor = "pybind11::cpp_function::cpp_function<";
  const std::size_t binding = std::min(demangled.find(kBinding), demangled.find(kConstructor));
  if (binding != std::string_view::npos &&
      demangled.find("{lambda(pybind11::detail::function_call&)") != std::string_view::npos) {
    const std::string bound = bound_name(demangled);
    return bound.empty() ? "pybind11 binding" : "pybind11 binding of " + bound;
  }
  return Folder(demangled).fold();
}

std::string readable_function(std::string_view mangled) {
  if (mangled.empty()) {
    return {};
  }
  // Glibc's internal name of an exported function.
  constexpr std::string_view kInternalAlias = "__GI_";
  if (mangled.starts_with(kInternalAlias)) {
    mangled.remove_prefix(kInternalAlias.size());
  }
  std::string_view plain = mangled;
  std::string name;
  if (mangled.starts_with("_Z") && mangled.size() <= kMaxMangled) {
    plain = without_clone(mangled);
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(std::string(plain).c_str(), nullptr, nullptr, &status), &std::free);
    if (text != nullptr && status == 0) {
      name = folded_name(text.get());
    }
  }
  if (name.empty()) {
    name = name_in(plain);
  }
  if (name.empty()) {
    name = without_clone(plain);
  }
  return base::elide(base::printable(name), kMaxName);
}

}  // namespace ddpdoctor::stacks
