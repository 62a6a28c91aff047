#include "leadership.h"

#include <time.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "sylar/fiber.h"
#include "sylar/log.h"

namespace jobs {

static auto g_logger = SYLAR_LOG_NAME("jobs");

namespace {

using Json = nlohmann::json;

class BootClock final : public sylar::Clock {
 public:
  int64_t nowNs() const override {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

/// The key behind the last of those that begin with `prefix`.
std::string behind(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace

const sylar::Clock& bootClock() {
  static const BootClock clock;
  return clock;
}

Leadership::Leadership(Etcd etcd, Options options, std::function<Json()> about, const sylar::Clock& clock)
    : m_options(std::move(options)), m_about(std::move(about)), m_clock(clock), m_etcd(std::move(etcd)) {}

void Leadership::run() {
  bool failed = false;
  while (!sylar::this_fiber::cancelled()) {
    try {
      renew();
      if (failed) SYLAR_LOG_INFO(g_logger) << "etcd answers again";
      failed = false;
    } catch (const std::exception& failure) {  // JSON of another form than etcd's, too
      if (!failed && !sylar::this_fiber::cancelled()) SYLAR_LOG_WARN(g_logger) << "cannot take part: " << failure.what();
      failed = true;
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(m_options.ttl) / 3);
  }
  resign();
}

std::optional<uint64_t> Leadership::fence() const {
  const std::lock_guard guard(m_lock);
  if (m_fence == 0 || m_clock.nowNs() >= m_lease_end_ns) return std::nullopt;
  return m_fence;
}

Members Leadership::members() const {
  const std::lock_guard guard(m_lock);
  return m_members;
}

/// Prolongs the lease, or takes a new one, and looks who leads.
void Leadership::renew() {
  const int64_t asked_ns = m_clock.nowNs();
  try {
    if (!m_lease.empty()) {  // etcd answers without a TTL if the lease has ended
      const Json kept = m_etcd.call("lease/keepalive", {{"ID", m_lease}});
      if (!kept.at("result").contains("TTL")) m_lease.clear();
    }
    if (m_lease.empty()) {
      const Json granted = m_etcd.call("lease/grant", {{"TTL", m_options.ttl.count()}});
      m_lease = granted.at("ID").get<std::string>();
    }
    read(enter(), asked_ns + std::chrono::nanoseconds(m_options.ttl).count());
  } catch (const LeaseGone&) {
    m_lease.clear();
    throw;
  }
}

/// Puts what is to be known of this replica, and the key of the leader if there is none.
Json Leadership::enter() {
  const std::string leader = toBase64(m_options.prefix + "/leader");
  const std::string members = m_options.prefix + "/members/";
  const auto put = [this](const std::string& key, const std::string& value) {
    return Json{{"request_put", {{"key", key}, {"value", toBase64(value)}, {"lease", m_lease}}}};
  };
  const Json me = put(toBase64(members + m_options.name), m_about().dump());
  const Json lead{{"request_range", {{"key", leader}}}};
  const Json all{{"request_range", {{"key", toBase64(members)}, {"range_end", toBase64(behind(members))}}}};
  const Json is_free{{"key", leader}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
  return m_etcd.call("kv/txn", {{"compare", Json::array({is_free})},
                                {"success", Json::array({put(leader, m_options.name), lead, me, all})},
                                {"failure", Json::array({lead, me, all})}});
}

/// Reads the answer to enter().
void Leadership::read(const Json& entered, int64_t lease_end_ns) {
  Members members;
  uint64_t fence = 0;
  for (const Json& response : entered.at("responses")) {
    if (!response.contains("response_range")) continue;
    const std::string own = m_options.prefix + "/members/";
    for (const Json& pair : response["response_range"].value("kvs", Json::array())) {
      const std::string key = fromBase64(pair.at("key").get<std::string>());
      const std::string value = fromBase64(pair.at("value").get<std::string>());
      if (key.starts_with(own)) {
        Json about = Json::parse(value, nullptr, false);  // what is no object was not put by a replica
        if (about.is_object()) members.members.push_back({key.substr(own.size()), std::move(about)});
        continue;
      }
      members.leader = value;
      if (pair.at("lease") == m_lease) fence = std::stoull(pair.at("create_revision").get<std::string>());
    }
  }
  const std::lock_guard guard(m_lock);
  if (fence != m_fence && fence != 0) SYLAR_LOG_INFO(g_logger) << m_options.name << " leads, with the token " << fence;
  if (fence == 0 && m_fence != 0) SYLAR_LOG_INFO(g_logger) << m_options.name << " leads no more";
  m_fence = fence;
  m_lease_end_ns = lease_end_ns;
  m_members = std::move(members);
}

void Leadership::resign() {
  {
    const std::lock_guard guard(m_lock);
    m_fence = 0;
  }
  const sylar::this_fiber::CancelShield shield;
  try {
    if (!m_lease.empty()) m_etcd.call("lease/revoke", {{"ID", m_lease}});
  } catch (const std::exception& failure) {
    SYLAR_LOG_WARN(g_logger) << "the lease ends by itself: " << failure.what();
  }
  m_lease.clear();
}

}  // namespace jobs
