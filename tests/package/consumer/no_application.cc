// A user's program without an Application, and without a name of the library's module app: its settings are there all the same,
// from before the program's own static objects on.
//
//   no_application FOLDER: writes a log.yml there, loads the folder, and logs.
#include <fstream>
#include <iterator>
#include <string>

#include "sylar/config.h"
#include "sylar/log.h"

static const auto g_connect_timeout = sylar::Config::Lookup("tcp.connect.timeout", 1, "tcp connect timeout");

int main(int, char** argv) {
  const std::string folder = argv[1], file = folder + "/out.txt";
  std::ofstream(folder + "/log.yml") << "logs: [{name: demo, appenders: [{type: FileLogAppender, formatter: '%m', file: " << file
                                     << "}]}]\n";
  const sylar::LoadResult result = sylar::Config::LoadFromConfDir(folder);
  SYLAR_LOG_INFO(SYLAR_LOG_NAME("demo")) << "hello";
  sylar::LoggerMgr::GetInstance()->flush();
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  return result.ok() && result.unknown.empty() && text == "hello" && g_connect_timeout->getValue() == 5000 ? 0 : 1;
}
