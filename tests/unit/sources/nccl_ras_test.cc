// SPDX-License-Identifier: Apache-2.0
// A server on the loopback that answers like NCCL's RAS, and some that do not.
#include "collector/sources/network/nccl_ras.h"

#include <map>
#include <string>
#include <thread>
#include <unistd.h>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace ddpdoctor::sources {
namespace {

/// Answers one client line by line; "VERBOSE STATUS" ends the conversation.
class FakeRas {
 public:
  explicit FakeRas(std::map<std::string, std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 1);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    question.port = std::to_string(ntohs(address.sin_port));
    server_ = std::thread([this] { serve(); });
  }
  FakeRas(const FakeRas&) = delete;
  FakeRas& operator=(const FakeRas&) = delete;
  FakeRas(FakeRas&&) = delete;
  FakeRas& operator=(FakeRas&&) = delete;
  ~FakeRas() {
    ::shutdown(listener_, SHUT_RDWR);
    server_.join();
    ::close(listener_);
  }

  RasQuestion question;
  std::string heard;  // read it after the answer

 private:
  void serve() {
    const int client = ::accept(listener_, nullptr, nullptr);
    std::string line;
    char byte = 0;
    while (client >= 0 && ::recv(client, &byte, 1, 0) == 1) {
      if (byte != '\n') {
        line += byte;
        continue;
      }
      heard += line + "|";
      const std::string answer =
          answers_.contains(line) ? answers_.at(line) : "ERROR: Unknown command\n";
      ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      if (line == "VERBOSE STATUS") {
        break;
      }
      line.clear();
    }
    if (client >= 0) {
      ::close(client);
    }
  }

  std::map<std::string, std::string> answers_;
  int listener_ = -1;
  std::thread server_;
};

std::map<std::string, std::string> usual() {
  return {{"CLIENT PROTOCOL 2", "SERVER PROTOCOL 2\n"},
          {"TIMEOUT 2", "OK\n"},
          {"SET FORMAT json", "OK\n"},
          {"VERBOSE STATUS", "{\"communicators\": []}\n"}};
}

TEST(NcclRas, GivesTheAnswerAsItCame) {
  FakeRas ras(usual());
  const auto answer = ask_ras(ras.question);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(*answer, "{\"communicators\": []}\n");
}

TEST(NcclRas, AsksOnceAndInOrder) {
  FakeRas ras(usual());
  ASSERT_TRUE(ask_ras(ras.question));
  EXPECT_EQ(ras.heard, "CLIENT PROTOCOL 2|TIMEOUT 2|SET FORMAT json|VERBOSE STATUS|");
}

TEST(NcclRas, SaysThatAnOldNcclTellsNoJson) {
  auto answers = usual();
  answers.erase("SET FORMAT json");
  FakeRas ras(answers);
  const auto answer = ask_ras(ras.question);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("2.28.7"), std::string::npos);
}

TEST(NcclRas, RecognisesAnotherServer) {
  auto answers = usual();
  answers["CLIENT PROTOCOL 2"] = "HTTP/1.1 400 Bad Request\n";
  FakeRas ras(answers);
  const auto answer = ask_ras(ras.question);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("something else listens there"), std::string::npos);
}

TEST(NcclRas, GivesUpAtTheDeadline) {
  auto answers = usual();
  answers["TIMEOUT 2"] = "";
  FakeRas ras(answers);
  ras.question.deadline = std::chrono::milliseconds(50);
  const auto answer = ask_ras(ras.question);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("no answer in time"), std::string::npos);
}

TEST(NcclRas, AsksNoNameServer) {
  EXPECT_FALSE(ask_ras({.host = "host.invalid", .port = "28028"}));
}

TEST(NcclRas, ReadsAddressesAsNcclWritesThem) {
  EXPECT_EQ(ras_question("10.0.0.1:99").host, "10.0.0.1");
  EXPECT_EQ(ras_question("10.0.0.1:99").port, "99");
  EXPECT_EQ(ras_question("").port, "28028");
  EXPECT_EQ(ras_question(":77").host, "127.0.0.1");
  EXPECT_EQ(ras_question(":77").port, "77");
}

}  // namespace
}  // namespace ddpdoctor::sources
