// SPDX-License-Identifier: Apache-2.0
#include "collector/values/source_files.h"

#include <array>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/model/questions.h"
#include "collector/values/from_syntax.h"
#include "collector/values/yielded.h"

namespace ddpdoctor::values {

namespace {

constexpr std::int64_t kLargestFile = 4 << 20;
constexpr std::size_t kMostFiles = 64;

std::string as_seen(pid_t pid, const std::string& path) {
  return fmt::format("/proc/{}/{}{}", pid, path.starts_with('/') ? "root" : "cwd/", path);
}

std::optional<std::string> content_of(int fd, std::int64_t size) {
  std::string content(static_cast<std::size_t>(size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(fd, content.data() + done, content.size() - done);
    if (got < 0) {
      return std::nullopt;
    }
    if (got == 0) {
      content.resize(done);
    }
    done += static_cast<std::size_t>(got);
  }
  return content;
}

program::SourceText::Map lines_of(const std::string& content) {
  program::SourceText::Map lines;
  int number = 0;
  for (const std::string_view line : base::split(content, '\n')) {
    const bool carriage_return = line.ends_with('\r');
    lines.emplace_hint(lines.end(), ++number,
                       line.substr(0, line.size() - (carriage_return ? 1 : 0)));
  }
  return lines;
}

}  // namespace

SourceFiles::File* SourceFiles::file(pid_t pid, const std::string& path) {
  const auto [known, is_new] = known_.try_emplace({pid, path}, nullptr);
  if (!is_new || path.empty() || path.front() == '<' || !path.ends_with(".py")) {
    return known->second;
  }
  const base::UniqueFd fd(
      ::open(as_seen(pid, path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kLargestFile) {
    return nullptr;
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const Identity identity{status.st_dev, status.st_ino,
                          status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
  auto found = files_.find(identity);
  if (found == files_.end()) {
    const auto content =
        files_.size() < kMostFiles ? content_of(fd.get(), status.st_size) : std::nullopt;
    if (!content) {
      return nullptr;
    }
    auto fresh = std::make_unique<File>();
    fresh->text = program::text_of(path, lines_of(*content), parsed_);
    fresh->index = &program::index_of(fresh->text);
    found = files_.emplace(identity, std::move(fresh)).first;
  }
  known->second = found->second.get();
  return known->second;
}

const program::SourceIndex* SourceFiles::index(pid_t pid, const std::string& path) {
  const File* found = file(pid, path);
  return found == nullptr ? nullptr : found->index;
}

program::KnownTexts SourceFiles::texts() const {
  program::KnownTexts texts;
  for (const auto& [seen, file] : known_) {
    if (file != nullptr) {
      texts.try_emplace(seen.second, file->text);
    }
  }
  return texts;
}

const Effects& SourceFiles::effects(pid_t pid) {
  Effects& all = effects_[pid];
  for (auto known = known_.lower_bound({pid, std::string()});
       known != known_.end() && known->first.first == pid; ++known) {
    File* const file = known->second;
    if (file == nullptr || !model::is_user_file(known->first.second)) {
      continue;
    }
    if (!file->effects) {
      file->effects.emplace(*file->index);
    }
    all.add(*file->effects);
  }
  return all;
}

const Expression* SourceFiles::body(pid_t pid, const std::string& path, int first_line,
                                    std::string_view qualname) {
  File* found = file(pid, path);
  if (found == nullptr) {
    return nullptr;
  }
  const auto [body, is_new] = found->bodies.try_emplace({first_line, std::string(qualname)});
  if (is_new) {
    const program::Node function = function_at(found->index->root(), first_line, qualname);
    body->second = qualname == "__init__" ? made_by(function) : returned_by(function);
    body->second = body->second ? std::move(body->second) : yielded_by(function);
  }
  return body->second ? &*body->second : nullptr;
}

}  // namespace ddpdoctor::values
