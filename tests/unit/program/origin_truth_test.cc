// SPDX-License-Identifier: Apache-2.0
// Whether something is true: the object that is tested answers itself; a flag is as old as the call
// that set it.
#include <string>

#include "collector/program/origin/origin.h"
#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::string_view source_of(const std::string& text, const char* condition) {
  const Sources sources{{"train.py", source("import signal, threading\n" + text)}};
  const SourceText& train = sources.at("train.py");
  return name_of(
      origin_of(condition, {.text = &train, .line = line_with(train, "HERE")}, sources).source);
}

const std::string_view kOfAll = name_of(Source::kUniform);

constexpr const char* kSession = R"(
class Own:
    def __init__(self):
        self.set_on = threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: self.set_on.set())
    def __bool__(self):
        return self.set_on.is_set()

class Never:
    def __bool__(self):
        return False

def request(pooled):
    kind = Never if pooled else Own
    return kind()

KINDS = {'own': Own, 'never': Never}

class Session:
    def __init__(self, cfg):
        self.asked = MADE
    def steps(self):
        f()  # HERE
)";

std::string session(const std::string& made) {
  std::string text = kSession;
  return text.replace(text.find("MADE"), 4, made);
}

TEST(Truth, OfAnObjectIsWhatItsClassAnswers) {
  const std::string_view signal = name_of(Source::kSignal);
  for (const std::string made :
       {"Own()", "request(cfg.pooled)", "KINDS[cfg.kind]()", "Own() if cfg.own else Never()"}) {
    for (const char* condition :
         {"self.asked", "not self.asked", "3 < 4 and not self.asked", "(1 if self.asked else 2)"}) {
      EXPECT_EQ(source_of(session(made), condition), signal) << made << " " << condition;
    }
  }
  EXPECT_EQ(source_of(session("Never()"), "not self.asked"), kOfAll);
  EXPECT_EQ(source_of(session("Own()"), "self.asked is None"), kOfAll) << "not its truth";
}

TEST(Truth, OfAnObjectWithoutAnAnswerIsItsLength) {
  const std::string held =
      "import torch\nclass Held:\n    def __init__(self):\n        self.rows = []\n"
      "    def add(self, x):\n        if x.sum().item() > 3:\n            self.rows.append(x)\n"
      "    def __len__(self):\n        return len(self.rows)\nheld = Held()\n"
      "for x in torch.utils.data.DataLoader(data):\n    held.add(x)\nf()  # HERE\n";
  EXPECT_NE(source_of(held, "not held"), kOfAll);
  EXPECT_NE(source_of(held, "held"), kOfAll);
}

constexpr const char* kPoll = R"(
class Other:
    def ask(self):
        pass

class Poll:
    def __init__(self):
        self.raised = False
    def ask(self):
        if not self.raised:
            self.raised = True
    def reached(self):
        f()  # HERE

def fit(model, batches):
    poll = Poll()
    other = Other()
    for n, x in enumerate(batches):
        loss = model(x)
        CALL
        poll.reached()
)";

/// `ask` is called in `fit`.
std::string asked_by(const std::string& call) {
  std::string text = kPoll;
  return text.replace(text.find("CALL"), 4, call);
}

TEST(Flag, IsAsOldAsTheCallThatSetIt) {
  const std::string own = "if loss.item() > 4: poll.ask()";
  EXPECT_EQ(source_of(asked_by(own), "self.raised"), name_of(Source::kData));
  EXPECT_EQ(source_of(asked_by("if n == 45: poll.ask()"), "self.raised"), kOfAll);
  EXPECT_EQ(source_of(asked_by(own + "\n        poll.ask()"), "self.raised"), kOfAll)
      << "every rank sets it, too";
}

TEST(Flag, OfAnotherClassWithSuchAMethodIsNotMeant) {
  EXPECT_EQ(source_of(asked_by("if loss.item() > 4: other.ask()"), "self.raised"), kOfAll);
}

}  // namespace
}  // namespace ddpdoctor::program
