// Settings from YAML files with checks, and a listener that is told of changes.
//
//   settings [DIRECTORY]      default: a directory made for the demonstration
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "sylar/config.h"
#include "sylar/config/fields.h"

// [struct]
struct Server {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Server&) const = default;
};

namespace sylar {
template <class Visit>
void eachField(Server& server, Visit&& visit) {
  visit("host", server.host, notEmpty());
  visit("port", server.port, inRange(1, 65535));
}
template <>
class LexicalCast<std::string, Server> : public FieldsFromText<Server> {};
template <>
class LexicalCast<Server, std::string> : public FieldsToText<Server> {};
}  // namespace sylar
// [struct]

// [settings]
const auto g_timeout = sylar::Config::Lookup("client.timeout", 5000, "of a request, in ms", sylar::inRange(1, 60'000));
const auto g_servers = sylar::Config::Lookup("client.servers", std::map<std::string, Server>{}, "by name");
// [settings]

void write(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

// [load]
void load(const std::string& directory) {
  const sylar::LoadResult result = sylar::Config::LoadFromConfDir(directory, false, sylar::UnknownKeys::kRefuse);
  std::printf("-- %s, %zu settings changed\n%s", result.ok() ? "taken" : "refused", result.changed, result.toString().c_str());
}
// [load]

int main(int argc, char** argv) {
  // [listener]
  g_timeout->addListener([](int was, int is) { std::printf("timeout: %d -> %d ms\n", was, is); });
  // [listener]
  if (argc > 1) {
    load(argv[1]);
    sylar::Config::Visit([](sylar::ConfigVarBase::ptr var) {
      std::printf("%s (%s): %s\n", var->getName().c_str(), var->getDescription().c_str(), var->toString().c_str());
    });
    return 0;
  }
  std::string directory = std::filesystem::temp_directory_path() / "settings_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return std::perror("mkdtemp"), 1;
  const std::string file = directory + "/client.yml";

  write(file, "client:\n  timeout: 250\n  servers:\n    main: {host: a.example, port: 80}\n");
  load(directory);
  std::printf("main is at %s\n", g_servers->getValue().at("main").host.c_str());

  write(file, "client:\n  timeout: 0\n  servers:\n    main: {host: a.example, port: 99999}\n  timeuot: 1\n");
  load(directory);  // reports three mistakes and changes nothing
  std::printf("timeout is still %d ms\n", g_timeout->getValue());
  std::filesystem::remove_all(directory);
}
