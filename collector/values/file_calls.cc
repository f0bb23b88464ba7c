// SPDX-License-Identifier: Apache-2.0
// Evaluates calls of os.path, os and pathlib. Paths are joined as Python joins them. Answers of the
// file system are those of now, not those that the program got, and are marked so.
#include <algorithm>

#include "collector/values/evaluator.h"

namespace ddpdoctor::values {

namespace {

using Kind = Value::Kind;

constexpr std::size_t kMostParts = 64;

void append(std::string& path, const std::string& part) {
  if (part.starts_with('/')) {
    path = part;
    return;
  }
  path += path.empty() || path.ends_with('/') ? part : "/" + part;
}

}  // namespace

/// The text of a str, of a pathlib.Path, or of a path that was joined here.
std::optional<std::string> Evaluator::path_text(const Value& value) {
  const Value plain = as_plain(value);
  if (plain.kind == Kind::kString) {
    return plain.text;
  }
  if (value.kind == Kind::kSequence && value.text == "path" && value.items.size() == 1) {
    return value.items[0].text;
  }
  if (value.kind != Kind::kObject) {
    return std::nullopt;
  }
  const RemoteAddress type = objects_.type_of(value.address);
  const bool is_path = attributes_.derives_from(type, "pathlib", "PurePath") ||
                       attributes_.derives_from(type, "pathlib._local", "PurePath");
  const auto kept = [&](std::string_view name) -> RemoteAddress {
    const stacks::Attribute found = attributes_.find(value.address, name);
    return found.kind == stacks::Attribute::Kind::kValue ? found.value : 0;
  };
  if (!is_path) {
    return std::nullopt;
  }
  if (auto text = objects_.string(kept("_str"))) {
    return text;
  }
  std::string path;  // 3.12 and later keep the arguments, older versions the parts
  const RemoteAddress given = kept("_raw_paths");
  for (const RemoteAddress part :
       objects_.elements(given != 0 ? given : kept("_parts"), kMostParts)) {
    const auto text = objects_.string(part);
    if (!text) {
      return std::nullopt;
    }
    append(path, *text);
  }
  return path.empty() ? std::nullopt : std::optional(path);
}

Value Evaluator::as_path(std::string text) {
  return Value::sequence("path", {Value::string(std::move(text))});
}

/// The result of a function of os or os.path, or of a method of Path; nothing if it is not known
/// here.
std::optional<Value> Evaluator::file_answer(std::string_view module, std::string_view name,
                                            const std::vector<Value>& arguments) {
  const bool of_path = module == "pathlib" || module == "pathlib._local";
  const std::string_view question = of_path ? name.substr(name.rfind('.') + 1) : name;
  if (arguments.empty() || !(of_path || module == "genericpath" || module == "posixpath" ||
                             (module == "posix" && name == "listdir"))) {
    return std::nullopt;
  }
  if ((module == "posixpath" && name == "join") || (of_path && question == "__truediv__")) {
    std::string path;
    for (const Value& one : arguments) {
      const auto part = path_text(one);
      if (!part) {
        return std::nullopt;
      }
      append(path, *part);
    }
    return of_path ? as_path(std::move(path)) : Value::string(std::move(path));
  }
  const auto path = arguments.size() == 1 && files_ ? path_text(arguments[0]) : std::nullopt;
  auto answer = path ? files_(question, *path) : std::nullopt;
  if (answer) {
    only_now_ = "the file system as it is now";
  }
  return answer;
}

}  // namespace ddpdoctor::values
