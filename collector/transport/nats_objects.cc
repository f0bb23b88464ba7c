// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/nats_objects.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <random>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace ddpdoctor::transport {
namespace {

using nlohmann::json;

constexpr const char* kBucket = "ddpdoctor";
constexpr const char* kObjectStream = "OBJ_ddpdoctor";
constexpr std::size_t kChunk = std::size_t{128} << 10U;
constexpr std::size_t kLargestObject = std::size_t{256} << 20U;
constexpr std::int64_t kMostBytes = std::int64_t{256} << 20U;                  // of the bucket
constexpr std::int64_t kOldest = std::int64_t{3} * 24 * 3600 * 1'000'000'000;  // nanoseconds
constexpr std::int64_t kAnswerLimit = 1000;                                    // milliseconds
constexpr double kOverhead = 1.02;              // bytes that the server adds to a message
constexpr std::uint64_t kOfAMessage = 4096;     // bytes of a description, at most
constexpr const char* kRollUp = "Nats-Rollup";  // this message replaces the previous ones

/// What the server keeps about an object.
struct Description {
  ObjectInfo about;
  std::string chunks;  // the word under which its contents are kept
  std::string digest;
  std::size_t pieces = 0;
};

std::string contents_subject(const std::string& word) {
  return fmt::format("$O.{}.C.{}", kBucket, word);
}

std::string description_subject(std::string_view name) {
  std::string encoded;
  base::append_base64(name, encoded, base::kBase64Url);
  return fmt::format("$O.{}.M.{}", kBucket, encoded);
}

std::string all_descriptions() {
  return fmt::format("$O.{}.M.>", kBucket);
}

std::string new_word() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr std::size_t kLength = 22;
  std::random_device random;
  std::string out;
  while (out.size() < kLength) {
    out += kLetters[random() % kLetters.size()];
  }
  return out;
}

std::string now_as_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// Nothing for a removed object, or a message that is not a description.
std::optional<Description> read_description(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  const auto field = [&object](const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? json() : *found;
  };
  if (!object.is_object() || field("deleted") == true || !field("name").is_string() ||
      !field("nuid").is_string() || !field("size").is_number_unsigned()) {
    return std::nullopt;
  }
  Description out;
  out.about = {.name = field("name"), .size = field("size"), .metadata = {}};
  out.chunks = field("nuid");
  out.digest = field("digest").is_string() ? field("digest") : json("");
  out.pieces = field("chunks").is_number_unsigned() ? field("chunks").get<std::size_t>() : 0;
  const json metadata = field("metadata");
  for (const auto& [name, value] : metadata.items()) {
    if (value.is_string()) {
      out.about.metadata[name] = value;
    }
  }
  // A word of more than one word would name other messages.
  const bool one_word = out.chunks.find_first_of(".*> ") == std::string::npos;
  return one_word && !out.chunks.empty() ? std::optional(std::move(out)) : std::nullopt;
}

class NatsObjects : public ObjectStore {
 public:
  NatsObjects(const LibNats& nats, jsCtx* stream) : nats_(nats), stream_(stream) {}

  base::Result<void> put(const ObjectInfo& about, std::string_view bytes) override {
    if (auto made = make_bucket(); !made) {
      return made;
    }
    if (auto made = make_room(about.name, bytes.size()); !made) {
      return made;
    }
    const auto former = describe(about.name);
    const std::string word = new_word();
    std::size_t pieces = 0;
    for (std::string_view left = bytes; !left.empty(); ++pieces) {
      const std::string_view piece = left.substr(0, kChunk);
      if (auto sent = send(contents_subject(word), piece, false); !sent) {
        purge(contents_subject(word));
        return sent;
      }
      left.remove_prefix(piece.size());
    }
    const json description = {{"name", about.name},
                              {"bucket", kBucket},
                              {"nuid", word},
                              {"size", bytes.size()},
                              {"mtime", now_as_text()},
                              {"chunks", pieces},
                              {"digest", digest(bytes)},
                              {"metadata", about.metadata},
                              {"options", {{"max_chunk_size", kChunk}}}};
    if (auto sent = send(description_subject(about.name), description.dump(), true); !sent) {
      purge(contents_subject(word));
      return sent;
    }
    if (former) {
      purge(contents_subject(former->chunks));
    }
    return {};
  }

  base::Result<std::vector<ObjectInfo>> list() override {
    std::vector<ObjectInfo> out;
    for (Description& one : TRY(descriptions())) {
      out.push_back(std::move(one.about));
    }
    return out;
  }

  base::Result<std::string> get(const std::string& name) override {
    const auto found = describe(name);
    if (!found) {
      return base::failure(fmt::format("the NATS server keeps no recording {}", name));
    }
    std::string out;
    if (found->about.size <= kLargestObject && found->pieces > 0) {
      const auto take = [&out](std::string_view piece) {
        out.append(piece.substr(0, kLargestObject - out.size()));
      };
      if (auto read = each_message(contents_subject(found->chunks), js_DeliverAll, take); !read) {
        return tl::make_unexpected(read.error());
      }
    }
    if (out.size() != found->about.size || digest(out) != found->digest) {
      return base::failure(
          fmt::format("the recording {} is not complete on the NATS server", name));
    }
    return out;
  }

 private:
  [[nodiscard]] base::Result<void> checked(natsStatus status) const {
    if (status == NATS_OK) {
      return {};
    }
    const char* const text = nats_.nats_GetLastError(nullptr);
    return base::failure(fmt::format(
        "the NATS server keeps no recordings: {}",
        base::printable(text != nullptr && *text != '\0' ? text
                                                         : nats_.natsStatus_GetText(status))));
  }

  [[nodiscard]] jsOptions options() const {
    jsOptions out;
    nats_.jsOptions_Init(&out);
    out.Wait = kAnswerLimit;
    return out;
  }

  [[nodiscard]] std::string digest(std::string_view bytes) const {
    constexpr std::size_t kLength = 32;
    std::array<unsigned char, kLength> hash{};
    nats_.sha256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash.data());
    std::string out = "SHA-256=";
    base::append_base64({reinterpret_cast<const char*>(hash.data()), hash.size()}, out,
                        base::kBase64Url);
    return out;
  }

  /// An operator may have made it before, with other limits.
  base::Result<void> make_bucket() {
    jsStreamConfig config;
    nats_.jsStreamConfig_Init(&config);
    const std::string contents = contents_subject(">");
    const std::string descriptions = all_descriptions();
    std::array<const char*, 2> subjects{contents.c_str(), descriptions.c_str()};
    config.Name = kObjectStream;
    config.Description = "recordings of ddpdoctor";
    config.Subjects = subjects.data();
    config.SubjectsLen = static_cast<int>(subjects.size());
    config.MaxAge = kOldest;
    config.MaxBytes = kMostBytes;
    config.Discard = js_DiscardNew;
    config.Storage = js_FileStorage;
    config.AllowRollup = true;
    config.AllowDirect = true;
    jsOptions limits = options();
    jsErrCode code{};
    const natsStatus status = nats_.js_AddStream(nullptr, stream_, &config, &limits, &code);
    return checked(code == JSStreamNameExistErr ? NATS_OK : status);
  }

  /// Removes the oldest objects until `size` more bytes fit.
  base::Result<void> make_room(const std::string& name, std::size_t size) {
    jsStreamInfo* info = nullptr;
    jsOptions limits = options();
    if (auto told =
            checked(nats_.js_GetStreamInfo(&info, stream_, kObjectStream, &limits, nullptr));
        !told) {
      return told;
    }
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(info->Config->MaxBytes, 0));
    std::uint64_t used = info->State.Bytes;
    nats_.jsStreamInfo_Destroy(info);
    const auto wanted =
        static_cast<std::uint64_t>(static_cast<double>(size) * kOverhead) + 2 * kOfAMessage;
    if (most == 0 || used + wanted <= most) {
      return {};
    }
    for (const Description& one : TRY(descriptions())) {
      if (used + wanted <= most) {
        break;
      }
      if (one.about.name != name) {
        remove(one);
        used -= std::min<std::uint64_t>(used, one.about.size);
      }
    }
    return {};
  }

  void remove(const Description& one) {
    const json description = {{"name", one.about.name},
                              {"bucket", kBucket},
                              {"nuid", one.chunks},
                              {"size", 0},
                              {"chunks", 0},
                              {"mtime", now_as_text()},
                              {"digest", ""},
                              {"deleted", true}};
    (void)send(description_subject(one.about.name), description.dump(), true);
    purge(contents_subject(one.chunks));
  }

  base::Result<void> send(const std::string& subject, std::string_view data, bool replaces) {
    natsMsg* message = nullptr;
    natsStatus status = nats_.natsMsg_Create(&message, subject.c_str(), nullptr, data.data(),
                                             static_cast<int>(data.size()));
    if (status == NATS_OK && replaces) {
      status = nats_.natsMsgHeader_Set(message, kRollUp, "sub");
    }
    jsPubOptions limits;
    nats_.jsPubOptions_Init(&limits);
    limits.MaxWait = kAnswerLimit;
    if (status == NATS_OK) {
      status = nats_.js_PublishMsg(nullptr, stream_, message, &limits, nullptr);
    }
    nats_.natsMsg_Destroy(message);
    return checked(status);
  }

  void purge(const std::string& subject) {
    jsOptions which = options();
    which.Stream.Purge.Subject = subject.c_str();
    nats_.js_PurgeStream(stream_, kObjectStream, &which, nullptr);
  }

  std::optional<Description> describe(const std::string& name) {
    natsMsg* message = nullptr;
    jsOptions limits = options();
    if (nats_.js_GetLastMsg(&message, stream_, kObjectStream, description_subject(name).c_str(),
                            &limits, nullptr) != NATS_OK) {
      return std::nullopt;
    }
    auto out = read_description(text_of(message));
    nats_.natsMsg_Destroy(message);
    return out;
  }

  base::Result<std::vector<Description>> descriptions() {
    std::vector<Description> out;
    const auto take = [&out](std::string_view text) {
      if (auto one = read_description(text)) {
        out.push_back(std::move(*one));
      }
    };
    if (auto read = each_message(all_descriptions(), js_DeliverLastPerSubject, take); !read) {
      return tl::make_unexpected(read.error());
    }
    return out;
  }

  [[nodiscard]] std::string_view text_of(natsMsg* message) const {
    return {nats_.natsMsg_GetData(message),
            static_cast<std::size_t>(std::max(nats_.natsMsg_GetDataLength(message), 0))};
  }

  /// Reads the messages that the server keeps under a subject now, the oldest first.
  template <class Take>
  base::Result<void> each_message(const std::string& subject, jsDeliverPolicy policy,
                                  const Take& take) {
    jsSubOptions how;
    nats_.jsSubOptions_Init(&how);
    how.Ordered = true;
    how.Config.DeliverPolicy = policy;
    natsSubscription* subscription = nullptr;
    if (auto made = checked(nats_.js_SubscribeSync(&subscription, stream_, subject.c_str(), nullptr,
                                                   &how, nullptr));
        !made) {
      return made;
    }
    natsMsg* message = nullptr;
    bool more = true;
    while (more &&
           nats_.natsSubscription_NextMsg(&message, subscription, kAnswerLimit) == NATS_OK) {
      jsMsgMetaData* meta = nullptr;
      more = nats_.natsMsg_GetMetaData(&meta, message) == NATS_OK && meta->NumPending > 0;
      nats_.jsMsgMetaData_Destroy(meta);
      take(text_of(message));
      nats_.natsMsg_Destroy(message);
    }
    nats_.natsSubscription_Destroy(subscription);
    return {};
  }

  const LibNats& nats_;
  jsCtx* stream_;
};

}  // namespace

std::unique_ptr<ObjectStore> nats_objects(const LibNats& nats, jsCtx* stream) {
  return std::make_unique<NatsObjects>(nats, stream);
}

}  // namespace ddpdoctor::transport
