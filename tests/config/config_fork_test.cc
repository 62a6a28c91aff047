// A forked child has one thread and uses settings, whatever the others were at when it was forked.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sylar/config.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SYLAR_TEST_SANITIZED_
#endif
#endif

namespace sylar {
namespace {

/// Forks beside threads that do `work`: each child must get through `body`. An alarm ends one that hangs.
void forkBeside(const std::vector<std::function<void()>>& work, int forks, const std::function<void()>& body) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const auto& each : work) {
    threads.emplace_back([&] {
      while (!stop) each();
    });
  }
  int ended = 0;
  for (int i = 0; i < forks && ended == i; ++i) {  // the first that hangs is enough
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      body();
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ended += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, forks);
}

class ConfigFork : public testing::Test {
 protected:
  void SetUp() override {
#ifdef SYLAR_TEST_SANITIZED_
    GTEST_SKIP() << "the allocators of the sanitizers keep their locks in a child that was forked beside threads";
#endif
  }
};

TEST_F(ConfigFork, ChildReadsSetsAndLooksUp) {
  const auto var = Config::Lookup("fork.a", 1);
  std::atomic<int> next{0};
  forkBeside({[&] { var->getValue(); }, [&] { var->setValue(++next); }, [&] { Config::Lookup<int>("fork.a"); }}, 300, [&] {
    Config::Lookup<int>("fork.a")->setValue(-1);
    if (var->getValue() != -1) _exit(1);
  });
}

TEST_F(ConfigFork, ChildLoads) {
  const auto var = Config::Lookup("fork_load.a", 0);
  const auto load = [](int value) { return Config::LoadFromYaml(YAML::Load("fork_load.a: " + std::to_string(value))).ok(); };
  ASSERT_TRUE(load(0));  // what yaml-cpp makes at its first use is made
  std::atomic<int> next{0};
  forkBeside({[&] { load(++next); }}, 50, [&] {
    if (!load(-1) || var->getValue() != -1) _exit(1);
  });
}

}  // namespace
}  // namespace sylar
