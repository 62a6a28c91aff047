#include "sylar/app/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sylar {
namespace {

CommandLine parse(std::vector<std::string> words) {
  words.insert(words.begin(), "service");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return CommandLine::parse(static_cast<int>(words.size()), argv.data());
}

TEST(CommandLine, Defaults) {
  const CommandLine line = parse({});
  EXPECT_EQ(line.config_dir, "conf");
  EXPECT_FALSE(line.check_config || line.help);
  EXPECT_EQ(line.error, "");
}

TEST(CommandLine, Options) {
  EXPECT_EQ(parse({"-c", "x"}).config_dir, "x");
  EXPECT_EQ(parse({"-s", "-cx"}).config_dir, "x");
  EXPECT_TRUE(parse({"--check-config"}).check_config);
  EXPECT_TRUE(parse({"-p"}).help);
  EXPECT_TRUE(parse({"--help"}).help);
}

TEST(CommandLine, MistakesSayWhatIsRight) {
  EXPECT_EQ(parse({"-c"}).error, "-c: a folder must follow, as in '-c conf'");
  EXPECT_EQ(parse({"-x"}).error, "-x: no such option");
  EXPECT_EQ(parse({"--check"}).error, "");  // unambiguous beginnings are right: getopt_long(3)
  EXPECT_EQ(parse({"--nope"}).error, "--nope: no such option");
  EXPECT_EQ(parse({"conf"}).error, "conf: nothing but options is expected");
  EXPECT_NE(parse({"-d"}).error.find("service manager"), std::string::npos);
}

}  // namespace
}  // namespace sylar
