// SPDX-License-Identifier: Apache-2.0
// Layouts from CPython's headers 3.8 to 3.14 (cpython/pystate.h, cpython/pyerrors.h,
// cpython/traceback.h, cpython/frameobject.h). A value is accepted only if the object's type is an
// exception or a traceback.
#include "collector/stacks/python/exception.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/object_flags.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::int32_t kNewestKnown = 0x030e;
constexpr std::uint64_t kIsException = std::uint64_t{1} << 30U;  // Py_TPFLAGS_BASE_EXC_SUBCLASS
constexpr int kMostChained = 256;                                // limit of nested generators
constexpr int kMostPlaces = 512;
constexpr std::size_t kLongestText = 200;

constexpr RemoteAddress kWord = 8;
/// Distance back from thread_id to exc_info; dict, gilstate_counter and async_exc are in between.
constexpr RemoteAddress kExceptionBeforeIdent = 4 * kWord;

RemoteAddress word_at(PythonObjects& objects, RemoteAddress address) {
  return address == 0 ? 0 : pointer(objects.memory(), address);
}

bool is_exception(PythonObjects& objects, RemoteAddress object) {
  const RemoteAddress type = objects.type_of(object);
  const auto offset = static_cast<RemoteAddress>(objects.layout().type_flags);
  return type != 0 && (word_at(objects, type + offset) & kIsException) != 0;
}

/// str(exception) for exceptions without their own __str__.
std::string text_of(PythonObjects& objects, RemoteAddress arguments) {
  const ReprLimits limits{.text = kLongestText, .items = 4, .depth = 1};
  const std::vector<RemoteAddress> parts = objects.elements(arguments, 4);
  if (parts.empty()) {
    return {};
  }
  if (parts.size() == 1) {
    const auto plain = objects.string(parts[0], kLongestText);
    return base::printable(plain ? *plain : objects.repr(parts[0], limits));
  }
  const auto number = objects.integer(parts[0]);
  const auto message = objects.string(parts[1], kLongestText);
  if (number && message) {  // OSError
    return base::printable(fmt::format("[Errno {}] {}", *number, *message));
  }
  return base::printable(objects.repr(arguments, limits));
}

/// "ValueError" for a class in Python, "json.JSONDecodeError" for one in C.
std::string short_type(std::string name) {
  return base::printable(name.substr(name.rfind('.') + 1));  // npos + 1 = 0
}

}  // namespace

RemoteAddress handled_exception(PythonObjects& objects, RemoteAddress thread_state) {
  const PythonLayout& layout = objects.layout();
  if (layout.version > kNewestKnown || layout.thread_ident < std::int64_t{kExceptionBeforeIdent} ||
      layout.object_header != 2 * std::int64_t{kWord}) {
    return 0;
  }
  // One entry for the thread and one per running generator, innermost first: exc_type, exc_value,
  // exc_traceback, previous_item; since 3.11 exc_value, previous_item.
  const bool old = layout.version < kVersion311;
  RemoteAddress entry =
      word_at(objects, thread_state + static_cast<RemoteAddress>(layout.thread_ident) -
                           kExceptionBeforeIdent);
  for (int i = 0; entry != 0 && i < kMostChained; ++i) {
    const RemoteAddress value = word_at(objects, entry + (old ? kWord : 0));
    if (value != 0 && is_exception(objects, value)) {
      return value;
    }
    entry = word_at(objects, entry + (old ? 3 * kWord : kWord));
  }
  return 0;
}

RemoteAddress printed_exception(PythonObjects& objects) {
  const auto module = objects.module("sys");
  const auto last = module ? objects.item(*module, "last_value") : std::nullopt;
  return last && is_exception(objects, *last) ? *last : 0;
}

std::optional<RaisedException> describe_exception(PythonObjects& objects, RemoteAddress exception,
                                                  const CodeDecoder& decode) {
  const PythonLayout& layout = objects.layout();
  if (exception == 0 || layout.version > kNewestKnown || !is_exception(objects, exception)) {
    return std::nullopt;
  }
  const bool old = layout.version < kVersion311;
  const RemoteAddress arguments = exception + 3 * kWord;                      // after dict
  const RemoteAddress traceback = exception + (old ? 4 * kWord : 5 * kWord);  // 3.11: after notes
  RaisedException out;
  out.type = short_type(objects.type_name(exception));
  out.text = text_of(objects, word_at(objects, arguments));
  // tb_next, tb_frame, tb_lasti; the first entry is where it is handled, the last where it was
  // raised
  RemoteAddress link = word_at(objects, traceback);
  for (int i = 0; i < kMostPlaces && objects.type_name(link) == "traceback"; ++i) {
    const RemoteAddress frame = word_at(objects, link + 3 * kWord);
    const RemoteAddress inner = old ? frame : word_at(objects, frame + 3 * kWord);  // f_frame
    const RemoteAddress code = untagged(
        word_at(objects, inner + static_cast<RemoteAddress>(layout.frame_code)), layout.version);
    const auto lasti = objects.memory().get<std::int32_t>(link + 4 * kWord);
    auto place = inner != 0 && lasti ? decode(code, *lasti) : std::nullopt;
    if (place) {
      out.places.push_back(std::move(*place));
    }
    link = word_at(objects, link + 2 * kWord);
  }
  std::reverse(out.places.begin(), out.places.end());
  return out;
}

}  // namespace ddpdoctor::stacks
