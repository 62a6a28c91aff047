#include "sylar/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sylar/config.h"

namespace sylar {
namespace {

bool init(Env& env, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return env.init(static_cast<int>(argv.size()), argv.data());
}

TEST(Env, ArgumentsAreKeysWithOrWithoutValue) {
  Env env;
  EXPECT_TRUE(init(env, {"-d", "-c", "conf/x", "-file", "a b", "-e", "", "-last"}));
  for (const char* key : {"d", "c", "file", "e", "last"}) EXPECT_TRUE(env.has(key)) << key;
  EXPECT_EQ(env.get("d", "default"), "");
  EXPECT_EQ(env.get("c"), "conf/x");
  EXPECT_EQ(env.get("file"), "a b");
  EXPECT_EQ(env.get("none", "default"), "default");
  EXPECT_FALSE(env.has("none"));
}

TEST(Env, WhatIsNoArgumentIsRefusedByName) {
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"x"}, {"-a", "1", "x"}, {"-a", "-"}, {"-"}, {"-a", "1", ""}}) {
    Env env;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(init(env, bad)) << bad.back();
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find('\'' + bad.back() + "': expected -key or -key value"), std::string::npos) << log;
  }
}

TEST(Env, TheLastValueOfAKeyCounts) {
  Env env;
  EXPECT_TRUE(init(env, {"-a", "1", "-a", "2", "-b", "1", "-b"}));
  EXPECT_EQ(env.get("a"), "2");
  EXPECT_EQ(env.get("b", "default"), "");
}

TEST(Env, KeysCanBeAddedAndDeleted) {
  Env env;
  env.add("k", "v");
  EXPECT_EQ(env.get("k"), "v");
  env.del("k");
  EXPECT_FALSE(env.has("k"));
}

TEST(Env, HelpListsWhatWasAdded) {
  Env env;
  init(env, {});
  env.addHelp("p", "port");
  env.addHelp("d", "daemon");
  env.addHelp("d", "in the background");
  env.addHelp("x", "gone");
  env.removeHelp("x");
  testing::internal::CaptureStdout();
  env.printHelp();
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "Usage: program [options]\n  -p : port\n  -d : daemon\n  -d : in the background\n");
}

TEST(Env, PathsAreRelativeToTheExecutable) {
  Env env;
  EXPECT_EQ(env.getExe(), std::filesystem::canonical("/proc/self/exe"));
  EXPECT_EQ(env.getCwd(), std::filesystem::canonical("/proc/self/exe").parent_path().string() + '/');
  EXPECT_EQ(env.getAbsolutePath("/a/b"), "/a/b");
  EXPECT_EQ(env.getAbsolutePath("a/b"), env.getCwd() + "a/b");
  EXPECT_EQ(env.getAbsolutePath(""), "/");
  EXPECT_EQ(env.getConfigPath(), env.getCwd() + "conf");
  env.add("c", "/etc/x");
  EXPECT_EQ(env.getConfigPath(), "/etc/x");
}

TEST(Env, WorkPathsAreBelowTheSetting) {
  Env env;
  EXPECT_EQ(env.getAbsoluteWorkPath("a"), env.getCwd() + 'a');
  const auto work = Config::Lookup("server.work_path", std::string("/var/x"));
  EXPECT_EQ(env.getAbsoluteWorkPath("a"), "/var/x/a");
  EXPECT_EQ(env.getAbsoluteWorkPath("/a"), "/a");
  EXPECT_EQ(env.getAbsoluteWorkPath(""), "/");
  work->setValue("rel");
  EXPECT_EQ(env.getAbsoluteWorkPath("a"), env.getCwd() + "rel/a");
  work->setValue("");
  EXPECT_EQ(env.getAbsoluteWorkPath("a"), env.getCwd() + 'a');
}

TEST(Env, EnvironmentIsSetAndRead) {
  Env env;
  EXPECT_TRUE(env.setEnv("SYLAR_ENV_TEST", "x"));
  EXPECT_EQ(env.getEnv("SYLAR_ENV_TEST"), "x");
  EXPECT_STREQ(std::getenv("SYLAR_ENV_TEST"), "x");
  EXPECT_FALSE(env.setEnv("", "x"));
  EXPECT_EQ(env.getEnv("SYLAR_ENV_NONE", "default"), "default");
}

TEST(Env, ManagerIsOneForTheProcess) { EXPECT_EQ(EnvMgr::GetInstance(), EnvMgr::GetInstance()); }

}  // namespace
}  // namespace sylar
