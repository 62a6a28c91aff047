// Settings are everybody's: many threads set, read, listen, look up and load. For ThreadSanitizer.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "sylar/config.h"
#include "tests/config/conf_dir_fixture.h"

namespace sylar {
namespace {

void onThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

// CD-G4: in the order of the commits, one at a time, without gaps, up to the last value.
TEST(ConfigRace, ListenerSeesAChainWithoutGaps) {
  ConfigVar<int> var("v", 0);
  std::atomic<int> inside{0};
  int last = 0;  // guarded by the promise that listeners are called one at a time
  int calls = 0;
  var.addListener([&](int was, int is) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    EXPECT_EQ(was, last);
    last = is;
    ++calls;
    inside.fetch_sub(1);
  });
  onThreads(4, [&](int thread) {
    for (int i = 1; i <= 500; ++i) var.setValue(i * 4 + thread);
  });
  EXPECT_EQ(last, var.getValue());
  EXPECT_GT(calls, 0);  // how many depends on how many changes meet: those are told as one
}

TEST(ConfigRace, ListenersComeAndGo) {
  ConfigVar<std::string> var("v", "");
  std::atomic<int> calls{0};
  onThreads(4, [&](int thread) {
    for (int i = 0; i < 300; ++i) {
      const uint64_t id = var.addListener([&](const std::string&, const std::string&) { calls.fetch_add(1); });
      var.setValue(std::to_string(thread * 1000 + i));
      EXPECT_TRUE(var.getListener(id));
      EXPECT_FALSE(var.getValue().empty());
      var.delListener(id);
    }
  });
  const int before = calls.load();
  var.setValue("last");
  EXPECT_EQ(calls.load(), before);
}

TEST(ConfigRace, LookupMakesOneSettingOfEachName) {
  std::vector<std::vector<ConfigVar<int>::ptr>> found(4);
  onThreads(4, [&](int thread) {
    for (int i = 0; i < 200; ++i) found[thread].push_back(Config::Lookup("race.made" + std::to_string(i), thread));
  });
  for (int thread = 1; thread < 4; ++thread) EXPECT_EQ(found[thread], found[0]);
}

// A setting that is made during a load has the value of that load or of the one before, and of the last one in the end.
TEST(ConfigRace, LookupDuringLoadsEndsWithTheLastValue) {
  constexpr int kLoads = 40;
  const auto textOf = [](int value) {
    std::string text = "race_late:\n";
    for (int i = 0; i < 100; ++i) text += "  k" + std::to_string(i) + ": " + std::to_string(value) + '\n';
    return text;
  };
  ASSERT_TRUE(Config::LoadFromYaml(YAML::Load(textOf(1))).ok());
  std::thread loader([&] {
    for (int i = 2; i <= kLoads; ++i) EXPECT_TRUE(Config::LoadFromYaml(YAML::Load(textOf(i))).ok());
  });
  onThreads(2, [&](int) {
    for (int i = 0; i < 100; ++i) {
      const int value = Config::Lookup("race_late.k" + std::to_string(i), 0)->getValue();
      EXPECT_GE(value, 1);
      EXPECT_LE(value, kLoads);
    }
  });
  loader.join();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Config::Lookup<int>("race_late.k" + std::to_string(i))->getValue(), kLoads);
}

class ConfigRaceDir : public test::ConfDir {};

TEST_F(ConfigRaceDir, LoadsReadsAndVisits) {
  const auto a = Config::Lookup("race_load.a", 0);
  const auto b = Config::Lookup("race_load.b", std::vector<int>{});
  write("a.yml", "race_load: {a: 1, b: [1, 2]}");
  onThreads(4, [&](int thread) {
    for (int i = 0; i < 25; ++i) {
      if (thread == 0) {
        EXPECT_TRUE(load(true).ok());
      } else if (thread == 1) {
        EXPECT_TRUE(Config::LoadFromYaml(YAML::Load("race_load: {a: 2, b: [3]}")).ok());
      } else if (thread == 2) {
        Config::Visit([](ConfigVarBase::ptr var) { EXPECT_FALSE(var->getTypeName().empty()); });
        EXPECT_FALSE(a->toString().empty());
      } else {
        EXPECT_LE(b->getValue().size(), 2U);
        EXPECT_TRUE(b->fromString("[7]"));
      }
    }
  });
  EXPECT_TRUE(load(true).ok());
  EXPECT_EQ(a->getValue(), 1);
}

}  // namespace
}  // namespace sylar
