// SPDX-License-Identifier: Apache-2.0
#include "collector/model/secrets.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

// Assembled here, so that no scanner reports this file as a leak.
const std::string kRandom = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z";

TEST(Secrets, ValuesAreHiddenAndTheirNamesStay) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"cd /w && HF_TOKEN=abc WANDB_API_KEY='a b' torchrun t.py",
       "cd /w && HF_TOKEN=… WANDB_API_KEY='…' torchrun t.py"},
      {"export PASSWORD=\"x y\";ls", "export PASSWORD=\"…\";ls"},
      {"t.py --hf-token abc --api-key=def -v", "t.py --hf-token … --api-key=… -v"},
      {"['t.py', '--hf-token', 'abc', '-v']", "['t.py', '--hf-token', '…', '-v']"},
      {R"({"api_key": "abc", "lr": 3})", R"({"api_key": "…", "lr": 3})"},
      {"login(password='abc', user='u')", "login(password='…', user='u')"},
      {"GET https://me:pw@host:80/x?a=b", "GET https://me:…@host:80/x?a=b"},
      {"redis://:pw@host/0", "redis://:…@host/0"},
      {"git clone https://abc@host/x", "git clone https://…@host/x"},
      {"Authorization: Bearer abcdefgh", "Authorization: Bearer …"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(without_secrets(text), expected);
    EXPECT_EQ(without_secrets(expected), expected) << "not stable";
  }
}

TEST(Secrets, TokensAreKnownByTheirShape) {
  for (const std::string& secret :
       {"ghp_" + kRandom, "hf_" + kRandom, "AKIA" + std::string("1234567890ABCDEF"),
        "glpat-" + kRandom, "sk-" + kRandom, "eyJ" + kRandom + ".eyJ" + kRandom + "." + kRandom}) {
    EXPECT_EQ(without_secrets("logged in with " + secret + ", ok"), "logged in with …, ok");
    EXPECT_EQ(without_secrets("AWS=" + secret), "AWS=…");
  }
}

TEST(Secrets, WhatIsNoneStays) {
  for (const std::string text :
       {"KeyError: 'token'", "ValueError: password: none given",
        "key=3, pad_token=0, num_tokens=512", "store.get(key=self.KEY)", "https://host:8080/a@b",
        "tcp://10.0.0.1:29500", "git@host:x/y.git", "ssh://git@host/x", "Bearer of bad news",
        "if KEY == 'a':", "hf_transformers_longer_than_thirty_letters_module",
        "sk-learn-contrib-and-a-very-long-name-of-it", "TOKENIZERS_PARALLELISM=false",
        "--master-port 29500 --token", "", "=", "://@", "--"}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

TEST(Secrets, OfACommand) {
  EXPECT_EQ(
      public_command({"python", "t.py", "--hf-token", "abc", "--lr=3", "--api_key=xyz", "-v"}),
      (std::vector<std::string>{"python", "t.py", "--hf-token", "…", "--lr=3", "--api_key=…",
                                "-v"}));
  EXPECT_EQ(public_command({"bash", "-c", "cd /w && HF_TOKEN=abc torchrun t.py --lr=3"}),
            (std::vector<std::string>{"bash", "-c", "cd /w && HF_TOKEN=… torchrun t.py --lr=3"}));
  EXPECT_EQ(public_command({"env", "HF_TOKEN=abc", "--url", "https://u:pw@h/"}),
            (std::vector<std::string>{"env", "HF_TOKEN=…", "--url", "https://u:…@h/"}));
}

}  // namespace
}  // namespace ddpdoctor::model
