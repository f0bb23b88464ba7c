// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/nats.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/transport/inbox.h"
#include "collector/transport/libnats.h"
#include "collector/transport/nats_objects.h"

namespace ddpdoctor::transport {
namespace {

constexpr int64_t kConnectLimit = 2000;  // milliseconds
constexpr int64_t kReconnectWait = 250;
constexpr int64_t kPing = 1000;  // after some unanswered pings the server counts as lost
constexpr int kMostPings = 3;
constexpr int kWhileAway = 1 << 20;  // bytes that may queue while the server is unavailable
constexpr int kPendingMessages = 1 << 20;
constexpr int kPendingBytes = 256 << 20;
constexpr int64_t kWriteLimit = 2000;
constexpr int64_t kReplayLimit = 1000;
constexpr int64_t kFlushLimit = 1000;
constexpr std::int64_t kKeptFor = std::int64_t{3} * 24 * 3600 * 1000000000;  // nanoseconds
constexpr std::int64_t kMostKept = std::int64_t{256} << 20U;                 // bytes
constexpr const char* kStream = "DDPDOCTOR";

void ignore_error(natsConnection* /*connection*/, natsSubscription* /*subscription*/,
                  natsStatus /*status*/, void* /*closure*/) {}

/// "Authorization Violation": the library's text for its last error.
std::string reason(const LibNats& nats, natsStatus status) {
  const char* const text = nats.nats_GetLastError(nullptr);
  return base::printable(text != nullptr && *text != '\0' ? text : nats.natsStatus_GetText(status));
}

/// The library's threads may deliver a message after a connection is closed: inboxes live as long
/// as the program.
Inbox* lasting_inbox() {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Inbox>> inboxes;
  const std::scoped_lock lock(mutex);
  inboxes.push_back(std::make_unique<Inbox>());
  return inboxes.back().get();
}

Packet packet_of(const LibNats& nats, natsMsg* message) {
  Packet packet;
  packet.subject = nats.natsMsg_GetSubject(message);
  const char* const reply = nats.natsMsg_GetReply(message);
  packet.reply = reply != nullptr ? reply : "";
  const int length = nats.natsMsg_GetDataLength(message);
  packet.data.assign(nats.natsMsg_GetData(message), static_cast<std::size_t>(std::max(length, 0)));
  nats.natsMsg_Destroy(message);
  return packet;
}

/// Called by the library's threads.
void receive(natsConnection* /*connection*/, natsSubscription* /*subscription*/, natsMsg* message,
             void* inbox) {
  const auto nats = load_libnats();
  static_cast<Inbox*>(inbox)->put(packet_of(**nats, message));
}

class NatsConnection : public Transport {
 public:
  explicit NatsConnection(const LibNats& nats) : nats_(nats), inbox_(lasting_inbox()) {}
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;
  NatsConnection(NatsConnection&&) = delete;
  NatsConnection& operator=(NatsConnection&&) = delete;
  ~NatsConnection() override {
    if (connection_ != nullptr) {
      nats_.natsConnection_FlushTimeout(connection_, kFlushLimit);
    }
    for (natsSubscription* subscription : subscriptions_) {
      nats_.natsSubscription_Destroy(subscription);
    }
    nats_.jsCtx_Destroy(stream_);
    nats_.natsConnection_Destroy(connection_);
  }

  natsStatus open(natsOptions* options) {
    return nats_.natsConnection_Connect(&connection_, options);
  }

  base::Result<void> publish(const std::string& subject, std::string_view data,
                             const std::string& reply) override {
    const int size = static_cast<int>(data.size());
    const natsStatus status =
        data.size() > kLongestMessage ? NATS_MAX_PAYLOAD
        : reply.empty()
            ? nats_.natsConnection_Publish(connection_, subject.c_str(), data.data(), size)
            : nats_.natsConnection_PublishRequest(connection_, subject.c_str(), reply.c_str(),
                                                  data.data(), size);
    return checked(status, "cannot send");
  }

  base::Result<void> subscribe(const std::string& pattern) override {
    natsSubscription* subscription = nullptr;
    const natsStatus status = nats_.natsConnection_Subscribe(&subscription, connection_,
                                                             pattern.c_str(), &receive, inbox_);
    if (status == NATS_OK) {
      nats_.natsSubscription_SetPendingLimits(subscription, kPendingMessages, kPendingBytes);
      const std::scoped_lock lock(mutex_);
      subscriptions_.push_back(subscription);
    }
    return checked(status, "cannot subscribe");
  }

  base::Result<void> keep(const std::string& pattern) override {
    jsCtx* const stream = stream_context();
    jsStreamConfig config;
    nats_.jsStreamConfig_Init(&config);
    std::array<const char*, 1> subjects{pattern.c_str()};
    const std::string name = fmt::format("{}-{}", kStream, subject_word(pattern));
    config.Name = name.c_str();
    config.Subjects = subjects.data();
    config.SubjectsLen = static_cast<int>(subjects.size());
    config.MaxMsgsPerSubject = 1;
    config.MaxAge = kKeptFor;
    config.MaxBytes = kMostKept;
    config.Storage = js_FileStorage;
    natsStatus status = NATS_NOT_PERMITTED;
    jsErrCode code{};
    if (stream != nullptr) {
      status = nats_.js_AddStream(nullptr, stream, &config, nullptr, &code);
      status = code == JSStreamNameExistErr ? NATS_OK : status;
    }
    return checked(status, "keeps nothing (JetStream)");
  }

  base::Result<void> replay(const std::string& pattern) override {
    jsCtx* const stream = stream_context();
    if (stream == nullptr) {
      return checked(NATS_NOT_PERMITTED, "keeps nothing (JetStream)");
    }
    jsSubOptions options;
    nats_.jsSubOptions_Init(&options);
    options.Ordered = true;
    options.Config.DeliverPolicy = js_DeliverLastPerSubject;
    natsSubscription* subscription = nullptr;
    const natsStatus status =
        nats_.js_SubscribeSync(&subscription, stream, pattern.c_str(), nullptr, &options, nullptr);
    if (status != NATS_OK) {
      return checked(status, "cannot read what is kept");
    }
    natsMsg* message = nullptr;
    bool more = true;
    while (more &&
           nats_.natsSubscription_NextMsg(&message, subscription, kReplayLimit) == NATS_OK) {
      more = pending_after(message) > 0;
      Packet packet = packet_of(nats_, message);
      packet.reply.clear();  // the subject for its acknowledgement
      packet.kept = true;
      inbox_->put(std::move(packet));
    }
    nats_.natsSubscription_Destroy(subscription);
    return {};
  }

  ObjectStore* objects() override {
    jsCtx* const stream = stream_context();
    const std::scoped_lock lock(mutex_);
    if (objects_ == nullptr && stream != nullptr && nats_.sha256 != nullptr) {
      objects_ = nats_objects(nats_, stream);
    }
    return objects_.get();
  }

  std::optional<Packet> next(std::chrono::milliseconds limit) override {
    return inbox_->take(limit);
  }

  [[nodiscard]] bool connected() const override {
    return nats_.natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
  }

  [[nodiscard]] std::uint64_t dropped() const override {
    return inbox_->dropped();
  }

 private:
  std::uint64_t pending_after(natsMsg* message) {
    jsMsgMetaData* meta = nullptr;
    if (nats_.natsMsg_GetMetaData(&meta, message) != NATS_OK) {
      return 0;
    }
    const std::uint64_t pending = meta->NumPending;
    nats_.jsMsgMetaData_Destroy(meta);
    return pending;
  }

  jsCtx* stream_context() {
    const std::scoped_lock lock(mutex_);
    if (stream_ == nullptr) {
      nats_.natsConnection_JetStream(&stream_, connection_, nullptr);
    }
    return stream_;
  }

  [[nodiscard]] base::Result<void> checked(natsStatus status, std::string_view what) const {
    if (status == NATS_OK) {
      return {};
    }
    return base::failure(fmt::format("the NATS server {}: {}", what, reason(nats_, status)));
  }

  const LibNats& nats_;
  Inbox* inbox_;
  natsConnection* connection_ = nullptr;
  std::mutex mutex_;
  jsCtx* stream_ = nullptr;
  std::unique_ptr<ObjectStore> objects_;
  std::vector<natsSubscription*> subscriptions_;
};

/// Owns the options while they are filled.
class Options {
 public:
  explicit Options(const LibNats& nats) : nats_(nats) {
    nats_.natsOptions_Create(&options_);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  Options(Options&&) = delete;
  Options& operator=(Options&&) = delete;
  ~Options() {
    nats_.natsOptions_Destroy(options_);
  }
  [[nodiscard]] natsOptions* get() const {
    return options_;
  }

 private:
  const LibNats& nats_;
  natsOptions* options_ = nullptr;
};

void set_behaviour(const LibNats& nats, natsOptions* options, const std::string& name) {
  nats.natsOptions_SetName(options, name.c_str());
  nats.natsOptions_SetTimeout(options, kConnectLimit);
  nats.natsOptions_SetMaxReconnect(options, -1);
  nats.natsOptions_SetReconnectWait(options, kReconnectWait);
  nats.natsOptions_SetReconnectBufSize(options, kWhileAway);
  nats.natsOptions_SetPingInterval(options, kPing);
  nats.natsOptions_SetMaxPingsOut(options, kMostPings);
  nats.natsOptions_SetWriteDeadline(options, kWriteLimit);
  nats.natsOptions_SetErrorHandler(options, &ignore_error, nullptr);
}

base::Result<void> set_servers(const LibNats& nats, natsOptions* options, const std::string& urls) {
  std::vector<std::string> texts;
  for (const std::string_view url : base::split(urls, ',')) {
    texts.emplace_back(url);
  }
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  const natsStatus status =
      nats.natsOptions_SetServers(options, pointers.data(), static_cast<int>(pointers.size()));
  if (status != NATS_OK) {
    return base::failure(fmt::format("--nats {}: {}", urls, reason(nats, status)),
                         "expected an address such as nats://head:4222");
  }
  return {};
}

base::Result<void> set_identity(const LibNats& nats, natsOptions* options,
                                const ServerAddress& address) {
  if (!address.credentials.empty()) {
    if (auto text = secret_of(address.credentials, "--nats-creds"); !text) {
      return tl::make_unexpected(text.error());  // the library's own error does not name the file
    }
    nats.natsOptions_SetUserCredentialsFromFiles(options, address.credentials.c_str(), nullptr);
  }
  if (!address.token.empty()) {
    const std::string token = TRY(secret_of(address.token, "--nats-token-file"));
    nats.natsOptions_SetToken(options, token.c_str());
  }
  if (!address.user.empty()) {
    const std::string both = TRY(secret_of(address.user, "--nats-user-file"));
    const std::size_t colon = both.find(':');
    if (colon == std::string::npos) {
      return base::failure(fmt::format("--nats-user-file {}: no colon in it", address.user),
                           "expected one line: user:password");
    }
    nats.natsOptions_SetUserInfo(options, both.substr(0, colon).c_str(),
                                 both.substr(colon + 1).c_str());
  }
  return {};
}

base::Result<void> set_tls(const LibNats& nats, natsOptions* options,
                           const ServerAddress& address) {
  const auto checked = [&nats](natsStatus status, std::string_view option,
                               const std::string& file) -> base::Result<void> {
    if (status == NATS_OK) {
      return {};
    }
    return base::failure(fmt::format("{} {}: {}", option, file, reason(nats, status)),
                         "expected a file in PEM format");
  };
  if (!address.ca.empty() || address.url.starts_with("tls://")) {
    nats.natsOptions_SetSecure(options, true);
  }
  if (!address.ca.empty()) {
    if (auto done = checked(nats.natsOptions_LoadCATrustedCertificates(options, address.ca.c_str()),
                            "--nats-ca", address.ca);
        !done) {
      return done;
    }
  }
  if (!address.certificate.empty()) {
    return checked(nats.natsOptions_LoadCertificatesChain(options, address.certificate.c_str(),
                                                          address.key.c_str()),
                   "--nats-cert", address.certificate);
  }
  return {};
}

base::Error why_not_connected(const LibNats& nats, natsStatus status, const std::string& url) {
  base::Error error{
      .what = fmt::format("no connection to the NATS server {}: {}", url, reason(nats, status)),
      .hint = {}};
  if (status == NATS_CONNECTION_AUTH_FAILED) {
    error = {.what = fmt::format("the NATS server {} refused our credentials", url),
             .hint = "name a file with --nats-creds, --nats-token-file or --nats-user-file"};
  } else if (status == NATS_NO_SERVER) {
    error = {.what = fmt::format("no NATS server answers at {}", url),
             .hint = "start one with: nats-server -js"};
  } else if (status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_REQUIRED ||
             status == NATS_SECURE_CONNECTION_WANTED) {
    error.hint = "name the certificate of its authority with --nats-ca";
  }
  return error;
}

}  // namespace

base::Result<void> nats_usable() {
  const auto loaded = load_libnats();
  return loaded ? base::Result<void>() : tl::make_unexpected(loaded.error());
}

base::Result<std::unique_ptr<Transport>> connect_to_nats(const ServerAddress& address,
                                                         const std::string& name) {
  if (auto sound = check(address); !sound) {
    return tl::make_unexpected(sound.error());
  }
  const LibNats& nats = *TRY(load_libnats());
  const Options options(nats);
  set_behaviour(nats, options.get(), name);
  for (const auto& done :
       {set_servers(nats, options.get(), address.url), set_identity(nats, options.get(), address),
        set_tls(nats, options.get(), address)}) {
    if (!done) {
      return tl::make_unexpected(done.error());
    }
  }
  auto connection = std::make_unique<NatsConnection>(nats);
  const natsStatus status = connection->open(options.get());
  if (status != NATS_OK) {
    return tl::make_unexpected(why_not_connected(nats, status, address.url));
  }
  return connection;
}

}  // namespace ddpdoctor::transport
