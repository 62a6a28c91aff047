// What a service is made of, as its YAML files say it: `workers`, `servers`, and the settings of the library itself.
//
// Thread safety: plain values; the functions from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sylar/app/fields.h"
#include "sylar/config/checks.h"
#include "sylar/config/config.h"
#include "sylar/http/limits.h"
#include "sylar/net/tcp_server.h"
#include "sylar/timer/timer.h"

namespace sylar {

/// workers.<name>: IOManagers of that name.
struct WorkerSetting {
  uint32_t thread_num = 1;  ///< threads of each
  uint32_t worker_num = 1;  ///< IOManagers; servers take turns at them

  bool operator==(const WorkerSetting&) const = default;
};

/// YAML of any shape, for whoever knows what it means; a string is its own text.
struct YamlText {
  std::string text;

  bool operator==(const YamlText&) const = default;
};

/// servers[]: a server, where it listens, and on whose threads.
struct ServerSetting {
  std::vector<std::string> address;  ///< ip:port, name:port, interface:port, or the path of a Unix socket
  std::string type = "http";         ///< as Application::addServerType() has it
  std::string name;                  ///< for log lines; at first the type
  std::string id;                    ///< the same, for who has several
  bool keepalive = false;            ///< http: a connection stays open between requests
  uint64_t timeout = 0;              ///< ms that a client may be silent; 0: tcp_server.read_timeout, http.idle_timeout
  bool ssl = false;
  std::string cert_file, key_file;
  std::string accept_worker, io_worker, process_worker;  ///< names of workers; "": the first there is
  YamlText args;                                         ///< for servers of one's own types

  bool operator==(const ServerSetting&) const = default;
};

using WorkerSettings = std::map<std::string, WorkerSetting>;
using ServerSettings = std::vector<ServerSetting>;

/// Makes all settings of the library, so that a load knows them; more calls do nothing. Two of them act at once when they change:
/// fiber.stack_size and tcp.connect.timeout.
void makeLibrarySettings();

// What they say now. The first call makes them.
ConfigVar<WorkerSettings>& workerSettings();
ConfigVar<ServerSettings>& serverSettings();
std::chrono::milliseconds drainSetting();      ///< app.drain_ms
std::chrono::milliseconds maxWaitSetting();    ///< io.max_wait_ms
std::chrono::nanoseconds timerSlackSetting();  ///< timer.slack_ns
std::chrono::microseconds spinSetting();       ///< io.spin_us
std::string pidFileSetting();                  ///< server.pid_file, below server.work_path; "" for none
TimerQueueKind timerQueueSetting();            ///< timer.queue
uint64_t readTimeoutSetting();                 ///< tcp_server.read_timeout, in ms
uint64_t idleTimeoutSetting();                 ///< tcp_server.idle_timeout, in ms
TcpServerLimits tcpServerLimitsSetting();      ///< tcp_server.*
http::HttpLimits httpLimitsSetting();          ///< http.*

template <class Visit>
void eachField(WorkerSetting& setting, Visit&& visit) {
  visit("thread_num", setting.thread_num, inRange(1u, 1024u));
  visit("worker_num", setting.worker_num, inRange(1u, 1024u));
}

template <class Visit>
void eachField(ServerSetting& setting, Visit&& visit) {
  const auto noTls = [](const auto& value) {
    return value == decltype(value){} ? "" : "there is no TLS yet; a TLS proxy can stand in front";
  };
  visit("address", setting.address,
        [](const auto& all) { return all.empty() ? "must name at least one address, such as [0.0.0.0:8020]" : ""; });
  visit("type", setting.type);
  visit("name", setting.name);
  visit("id", setting.id);
  visit("keepalive", setting.keepalive);
  visit("timeout", setting.timeout, inRange<uint64_t>(0, 86'400'000));
  visit("ssl", setting.ssl, noTls);
  visit("cert_file", setting.cert_file, noTls);
  visit("key_file", setting.key_file, noTls);
  visit("accept_worker", setting.accept_worker);
  visit("io_worker", setting.io_worker);
  visit("process_worker", setting.process_worker);
  visit("args", setting.args);
}

template <>
class LexicalCast<std::string, WorkerSetting> : public FieldsFromText<WorkerSetting> {};
template <>
class LexicalCast<WorkerSetting, std::string> : public FieldsToText<WorkerSetting> {};
template <>
class LexicalCast<std::string, ServerSetting> : public FieldsFromText<ServerSetting> {};
template <>
class LexicalCast<ServerSetting, std::string> : public FieldsToText<ServerSetting> {};

template <>
class LexicalCast<std::string, YamlText> {
 public:
  YamlText operator()(const std::string& text) const { return {text}; }
  YamlText operator()(const YamlNode& node) const { return {node.isScalar() ? node.text : toYamlText(node)}; }
};
template <>
class LexicalCast<YamlText, std::string> {
 public:
  std::string operator()(const YamlText& yaml) const { return yaml.text; }
  static YamlNode toNode(const YamlText& yaml) { return YamlNode::scalar(yaml.text); }
};

}  // namespace sylar
