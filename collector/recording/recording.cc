// SPDX-License-Identifier: Apache-2.0
// Contents are split into small frames: neither side trusts a size that it has not bounded, and a
// truncated or damaged file still gives the frames before the fault.
#include "collector/recording/recording.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <zstd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/capture.h"
#include "collector/imports/capture/rescue.h"

namespace ddpdoctor::recording {
namespace {

// Like PNG's: a non-ASCII byte, and line ends that a text-mode transfer would change.
constexpr std::string_view kMagic =
    "\x89"
    "DDPD\r\n\x1a";
constexpr std::size_t kLargestFrame = std::size_t{4} << 20U;
// A truncated file loses whole frames: small frames lose little, and cost 6 % of a recording of 90
// KB.
constexpr std::size_t kFrameContents = std::size_t{64} << 10U;
constexpr std::size_t kWord = 4;
// A capture repeats the same words: above this level, time grows faster than the file shrinks.
constexpr int kLevel = 6;

void append_word(std::string& out, std::size_t value) {
  for (std::size_t i = 0; i < kWord; ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
  }
}

std::optional<std::size_t> take_word(std::string_view& bytes) {
  if (bytes.size() < kWord) {
    return std::nullopt;
  }
  std::size_t value = 0;
  for (std::size_t i = 0; i < kWord; ++i) {
    value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  bytes.remove_prefix(kWord);
  return value;
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const {
    ZSTD_freeCCtx(context);
  }
};

void append_frame(ZSTD_CCtx* context, std::string_view contents, std::string& out) {
  std::string packed(ZSTD_compressBound(contents.size()), '\0');
  const std::size_t size =
      ZSTD_compress2(context, packed.data(), packed.size(), contents.data(), contents.size());
  if (ZSTD_isError(size) != 0) {
    throw std::bad_alloc();  // with a buffer of that size, nothing else can fail
  }
  append_word(out, size);
  append_word(out, contents.size());
  out.append(packed, 0, size);
}

std::string cut_short(const std::string& name, std::size_t whole) {
  return fmt::format("{} is cut short: it ends after {} whole frame{}", name, whole,
                     whole == 1 ? "" : "s");
}

/// The contents of the frames before the first fault.
struct Contents {
  std::string text;
  std::size_t frames = 0;
  std::string fault;  // empty = the file is complete
};

/// Appends one frame's contents to `out`; returns the reason when the frame is damaged.
std::string unpack(std::string_view packed, std::size_t size, std::string& out) {
  if (size == 0 || size > kLargestFrame) {
    return "has an impossible size";
  }
  const std::size_t start = out.size();
  out.resize(start + size);
  const std::size_t got = ZSTD_decompress(out.data() + start, size, packed.data(), packed.size());
  if (ZSTD_isError(got) == 0 && got == size) {
    return {};
  }
  out.resize(start);
  return ZSTD_isError(got) != 0 ? fmt::format("cannot be unpacked ({})", ZSTD_getErrorName(got))
                                : "contains less than its header states";
}

base::Result<Contents> contents_of(std::string_view bytes, const std::string& name) {
  Contents out;
  while (out.fault.empty()) {
    const auto packed = take_word(bytes);
    if (packed && *packed == 0) {
      if (!bytes.empty()) {  // a full disk or a machine crash leaves zeros at the end
        out.fault =
            fmt::format("{} is damaged: what follows frame {} is not a frame", name, out.frames);
      }
      break;
    }
    const auto size = take_word(bytes);
    if (!packed || !size || bytes.size() < *packed) {
      out.fault = cut_short(name, out.frames);
    } else if (*size > kLargestContents - out.text.size()) {
      return base::failure(fmt::format("{} holds more than {}", name,
                                       base::bytes(static_cast<double>(kLargestContents))));
    } else if (const std::string why = unpack(bytes.substr(0, *packed), *size, out.text);
               !why.empty()) {
      out.fault = fmt::format("{} is damaged: frame {} {}", name, out.frames + 1, why);
    } else {
      bytes.remove_prefix(*packed);
      ++out.frames;
    }
  }
  return out;
}

/// True when the document has its last field.
bool is_closed(std::string_view document) {
  const std::string_view text = base::trim(document);
  return !text.empty() && text.back() == '}';
}

}  // namespace

bool is_recording(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

std::string save(const model::JobModel& job) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) {
    throw std::bad_alloc();
  }
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const std::string contents = imports::write_capture(job);
  std::string out(kMagic);
  append_word(out, kVersion);
  append_word(out, 0);
  for (std::string_view left = contents; !left.empty();) {
    const std::string_view part = left.substr(0, kFrameContents);
    append_frame(context.get(), part, out);
    left.remove_prefix(part.size());
  }
  append_word(out, 0);
  return out;
}

base::Result<model::JobModel> load(std::string_view bytes, const std::string& name) {
  if (!is_recording(bytes)) {
    return base::failure(fmt::format("{} is not a recording of ddpdoctor", name));
  }
  bytes.remove_prefix(kMagic.size());
  const auto version = take_word(bytes);
  const auto reserved = take_word(bytes);
  if (!version || !reserved) {
    return base::failure(cut_short(name, 0), "was it copied to the end?");
  }
  if (*version != kVersion) {
    return base::failure(fmt::format("{} is a recording of version {}; this ddpdoctor reads {}",
                                     name, *version, kVersion),
                         "read it with the ddpdoctor that wrote it, or a newer one");
  }
  const Contents contents = TRY(contents_of(bytes, name));
  if (contents.fault.empty() && is_closed(contents.text)) {
    return imports::read_capture(contents.text, name);
  }
  return imports::rescue_capture(
      contents.text, name,
      contents.fault.empty() ? cut_short(name, contents.frames) : contents.fault);
}

}  // namespace ddpdoctor::recording
