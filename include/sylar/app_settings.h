// The settings of a service, as its YAML files give them: `workers`, `servers`, and the settings of the library itself.
//
// Thread safety: plain values; the functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sylar/api.h"
#include "sylar/config/checks.h"
#include "sylar/config/config_var.h"
#include "sylar/config/fields.h"

namespace sylar {

struct TcpServerLimits;
enum class FiberIdentity : uint8_t;
enum class TimerQueueKind : uint8_t;
namespace http {
struct HttpLimits;
}

/// The setting `workers.<name>`, which stands for IOManagers of that name.
struct WorkerSetting {
  uint32_t thread_num = 1;  ///< threads of each IOManager
  uint32_t worker_num = 1;  ///< number of IOManagers; servers use them in turn

  bool operator==(const WorkerSetting&) const = default;
};

/// YAML of any shape, for code that knows what it means. A string is its own text.
struct YamlText {
  std::string text;

  bool operator==(const YamlText&) const = default;
};

/// An element of the setting `servers`: a server, where it listens, and which workers run it.
struct ServerSetting {
  std::vector<std::string> address;  ///< ip:port, name:port, interface:port, or the path of a Unix socket
  std::string type = "http";         ///< a type of Application::addServerType()
  std::string name;                  ///< for log lines; the type if empty
  std::string id;                    ///< for programs that tell several servers apart
  bool keepalive = false;            ///< http: a connection stays open between requests
  uint64_t timeout = 0;              ///< ms that a client may be silent; 0: as tcp_server.read_timeout and http.idle_timeout say
  bool ssl = false;                  ///< speaks TLS, in a program that links sylar::tls
  std::string cert_file, key_file;   ///< of `ssl`: PEM, the certificate with those that have signed it, and its key
  std::string accept_worker, io_worker, process_worker;  ///< names of workers; "" is the first worker
  YamlText args;                                         ///< for server types of the program's own

  bool operator==(const ServerSetting&) const = default;
};

using WorkerSettings = std::map<std::string, WorkerSetting>;
using ServerSettings = std::vector<ServerSetting>;

// The settings of the library exist from the first use of Config on, in every program that links this module, so that a lookup
// finds the library's types and checks. If a program has made one of another type before, the library keeps its default, and an
// error is logged. These act at once when they change, with or without an Application: logs, fiber.stack_size, tcp.connect.timeout,
// hook.eintr, hook.close, hook.locks, hook.files, blocking.*, and io.engine for files. The Application looks at app.drain_ms when
// it ends.

// The functions return the present values. A caller includes the header of the struct or enum that it asks for.
SYLAR_API ConfigVar<WorkerSettings>& workerSettings();
SYLAR_API ConfigVar<ServerSettings>& serverSettings();
SYLAR_API std::chrono::milliseconds drainSetting();      ///< app.drain_ms
SYLAR_API std::chrono::milliseconds trimAfterSetting();  ///< fiber.trim_after_ms
SYLAR_API std::chrono::milliseconds maxWaitSetting();    ///< io.max_wait_ms
SYLAR_API std::chrono::nanoseconds timerSlackSetting();  ///< timer.slack_ns
SYLAR_API std::chrono::microseconds spinSetting();       ///< io.spin_us
SYLAR_API std::chrono::milliseconds watchdogSetting();   ///< hook.watchdog_ms; 0 for none
SYLAR_API std::string pidFileSetting();                  ///< server.pid_file, below server.work_path; "" for none
SYLAR_API TimerQueueKind timerQueueSetting();            ///< timer.queue
SYLAR_API FiberIdentity identitySetting();               ///< fiber.identity
SYLAR_API uint64_t readTimeoutSetting();                 ///< tcp_server.read_timeout, in ms
SYLAR_API uint64_t idleTimeoutSetting();                 ///< tcp_server.idle_timeout, in ms
SYLAR_API TcpServerLimits tcpServerLimitsSetting();      ///< tcp_server.*
SYLAR_API http::HttpLimits httpLimitsSetting();          ///< http.*

template <class Visit>
void eachField(WorkerSetting& setting, Visit&& visit) {
  visit("thread_num", setting.thread_num, inRange(1u, 1024u));
  visit("worker_num", setting.worker_num, inRange(1u, 1024u));
}

template <class Visit>
void eachField(ServerSetting& setting, Visit&& visit) {
  visit("address", setting.address,
        [](const auto& all) { return all.empty() ? "must name at least one address, such as [0.0.0.0:8020]" : ""; });
  visit("type", setting.type);
  visit("name", setting.name);
  visit("id", setting.id);
  visit("keepalive", setting.keepalive);
  visit("timeout", setting.timeout, inRange<uint64_t>(0, 86'400'000));
  visit("ssl", setting.ssl);
  visit("cert_file", setting.cert_file);
  visit("key_file", setting.key_file);
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
