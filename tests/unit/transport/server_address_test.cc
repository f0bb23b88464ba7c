// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/server_address.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ddpdoctor::transport {
namespace {

/// A file that is removed at the end of the test.
class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("ddpdoctor_address_" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
  }
  ~File() {
    std::filesystem::remove(path_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&&) = delete;
  File& operator=(File&&) = delete;
  [[nodiscard]] std::string path() const {
    return path_.string();
  }

 private:
  std::filesystem::path path_;
};

TEST(ServerAddress, APasswordOnTheCommandLineIsRefused) {
  const auto refused = check({.url = "nats://me:secret@head:4222"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what.find("secret"), std::string::npos);
  EXPECT_TRUE(check({.url = "nats://head:4222,tls://spare:4222"}));
  EXPECT_TRUE(check({.url = "head"}));
  EXPECT_FALSE(check({.url = "http://head:4222"}));
  EXPECT_FALSE(check({.url = "nats://"}));
}

TEST(ServerAddress, ACertificateNeedsItsKey) {
  EXPECT_FALSE(check({.url = "tls://head:4222", .certificate = "a.pem"}));
  EXPECT_TRUE(check({.url = "tls://head:4222", .certificate = "a.pem", .key = "a.key"}));
}

TEST(ServerAddress, ASecretIsTheFirstLineOfItsFile) {
  const File file("  s3cret \nsecond\n");
  EXPECT_EQ(secret_of(file.path(), "--nats-token-file").value(), "s3cret");
  EXPECT_FALSE(secret_of(file.path() + "-absent", "--nats-token-file"));
  const File empty("\n");
  EXPECT_FALSE(secret_of(empty.path(), "--nats-token-file"));
}

TEST(ServerAddress, AContextFillsWhatWasNotTyped) {
  const File file(R"({"url": "nats://head:4222", "creds": "/a.creds", "token": ""})");
  const auto both = with_context({.credentials = "/typed.creds"}, file.path());
  ASSERT_TRUE(both);
  EXPECT_EQ(both->url, "nats://head:4222");
  EXPECT_EQ(both->credentials, "/typed.creds");
  const File secret(R"({"url": "nats://head:4222", "token": "abc"})");
  EXPECT_FALSE(with_context({}, secret.path()));
  const File other("[1]");
  EXPECT_FALSE(with_context({}, other.path()));
}

}  // namespace
}  // namespace ddpdoctor::transport
