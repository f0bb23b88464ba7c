// SPDX-License-Identifier: Apache-2.0
// Contents are cut into frames of a few MiB, so that neither side ever trusts a size it has not
// bounded, and damage is known by the frame it lies in.
#include "collector/recording/recording.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <zstd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture.h"

namespace ddpdoctor::recording {
namespace {

// Like PNG's: a byte that is no ASCII, and line ends that a text transfer would spoil.
constexpr std::string_view kMagic =
    "\x89"
    "DDPD\r\n\x1a";
constexpr std::size_t kFrameContents = std::size_t{4} << 20U;
constexpr std::size_t kWord = 4;
// A capture is words that recur: beyond this level time grows faster than the file shrinks.
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
    throw std::bad_alloc();  // into a buffer of that bound nothing else can fail
  }
  append_word(out, size);
  append_word(out, contents.size());
  out.append(packed, 0, size);
}

auto cut_short(const std::string& name, std::size_t whole) {
  return base::failure(fmt::format("{} is cut short: it ends after {} whole frame{}", name, whole,
                                   whole == 1 ? "" : "s"),
                       "was it copied to the end? what is left of a recording cannot be diagnosed");
}

/// One frame's contents appended to `out`.
base::Result<void> unpack(std::string_view packed, std::size_t size, std::size_t index,
                          const std::string& name, std::string& out) {
  const auto damaged = [&](std::string_view why) {
    return base::failure(fmt::format("{} is damaged: frame {} {}", name, index + 1, why));
  };
  if (size == 0 || size > kFrameContents) {
    return damaged("says an impossible size");
  }
  const std::size_t start = out.size();
  out.resize(start + size);
  const std::size_t got = ZSTD_decompress(out.data() + start, size, packed.data(), packed.size());
  if (ZSTD_isError(got) != 0) {
    return damaged(fmt::format("cannot be unpacked ({})", ZSTD_getErrorName(got)));
  }
  return got == size ? base::Result<void>() : damaged("holds less than it says");
}

base::Result<std::string> contents_of(std::string_view bytes, const std::string& name) {
  std::string out;
  for (std::size_t index = 0;; ++index) {
    const auto packed = take_word(bytes);
    if (!packed) {
      return cut_short(name, index);
    }
    if (*packed == 0) {
      return out;
    }
    const auto size = take_word(bytes);
    if (!size || bytes.size() < *packed) {
      return cut_short(name, index);
    }
    if (*size > kLargestContents - out.size()) {
      return base::failure(fmt::format("{} holds more than {}", name,
                                       base::bytes(static_cast<double>(kLargestContents))));
    }
    if (auto done = unpack(bytes.substr(0, *packed), *size, index, name, out); !done) {
      return tl::make_unexpected(done.error());
    }
    bytes.remove_prefix(*packed);
  }
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
    return base::failure(fmt::format("{} is no recording of ddpdoctor", name));
  }
  bytes.remove_prefix(kMagic.size());
  const auto version = take_word(bytes);
  const auto reserved = take_word(bytes);
  if (!version || !reserved) {
    return cut_short(name, 0);
  }
  if (*version != kVersion) {
    return base::failure(fmt::format("{} is a recording of version {}; this ddpdoctor reads {}",
                                     name, *version, kVersion),
                         "read it with the ddpdoctor that wrote it, or a newer one");
  }
  const std::string contents = TRY(contents_of(bytes, name));
  return imports::read_capture(contents, name);
}

}  // namespace ddpdoctor::recording
