// Unmodified librdkafka in many fibers, and a cluster of its own that is slow, dies and comes back. A call of it waits at a
// condition for what its threads do.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "sylar/sync/event.h"
#include "tests/integration/clients/crowd.h"
#include "tests/support/stopwatch.h"

namespace sylar::test {
namespace {

constexpr int kPatienceMs = std::chrono::milliseconds(kPatience).count();
constexpr const char* kTopic = "topic";

struct Free {
  void operator()(rd_kafka_t* kafka) const { ::rd_kafka_destroy(kafka); }
  void operator()(rd_kafka_mock_cluster_t* cluster) const { ::rd_kafka_mock_cluster_destroy(cluster); }
  void operator()(rd_kafka_message_t* message) const { ::rd_kafka_message_destroy(message); }
  void operator()(rd_kafka_topic_partition_list_t* list) const { ::rd_kafka_topic_partition_list_destroy(list); }
};
using Kafka = std::unique_ptr<rd_kafka_t, Free>;

/// Where a message has got.
struct Delivery {
  std::promise<int64_t> offset;  ///< or the negative error
};

void delivered(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
  auto* const delivery = static_cast<Delivery*>(message->_private);
  if (delivery != nullptr) delivery->offset.set_value(message->err == 0 ? message->offset : -std::abs(message->err));
}

Kafka make(rd_kafka_type_t type, const std::map<std::string, std::string>& settings) {
  rd_kafka_conf_t* const conf = ::rd_kafka_conf_new();
  char error[200] = "";
  for (const auto& [name, value] : settings) {
    EXPECT_EQ(::rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error), RD_KAFKA_CONF_OK) << error;
  }
  EXPECT_EQ(::rd_kafka_conf_set(conf, "log_level", "0", error, sizeof error), RD_KAFKA_CONF_OK);
  if (type == RD_KAFKA_PRODUCER) ::rd_kafka_conf_set_dr_msg_cb(conf, &delivered);
  Kafka kafka(::rd_kafka_new(type, conf, error, sizeof error));
  EXPECT_NE(kafka, nullptr) << error;
  return kafka;
}

/// Brokers in threads of the library.
class Cluster {
 public:
  explicit Cluster(int partitions) { EXPECT_EQ(::rd_kafka_mock_topic_create(m_brokers.get(), kTopic, partitions, 1), 0); }
  void dies() { EXPECT_EQ(::rd_kafka_mock_broker_set_down(m_brokers.get(), -1), 0); }
  void returns() { EXPECT_EQ(::rd_kafka_mock_broker_set_up(m_brokers.get(), -1), 0); }
  void answersAfter(int ms) { EXPECT_EQ(::rd_kafka_mock_broker_set_rtt(m_brokers.get(), -1, ms), 0); }

  Kafka producer() const { return make(RD_KAFKA_PRODUCER, {servers(), kWait, kLongestWait, {"linger.ms", "0"}}); }
  /// Reads partition `partition` from its beginning.
  Kafka consumer(int partition) const {
    Kafka kafka =
        make(RD_KAFKA_CONSUMER, {servers(), kWait, kLongestWait, {"group.id", "group"}, {"enable.auto.commit", "false"}});
    EXPECT_EQ(::rd_kafka_poll_set_consumer(kafka.get()), 0);
    const std::unique_ptr<rd_kafka_topic_partition_list_t, Free> list(::rd_kafka_topic_partition_list_new(1));
    ::rd_kafka_topic_partition_list_add(list.get(), kTopic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
    EXPECT_EQ(::rd_kafka_assign(kafka.get(), list.get()), 0);
    return kafka;
  }

 private:
  std::pair<const std::string, std::string> servers() const {
    return {"bootstrap.servers", ::rd_kafka_mock_cluster_bootstraps(m_brokers.get())};
  }
  static inline const std::pair<const std::string, std::string> kWait{"reconnect.backoff.ms", "5"};
  static inline const std::pair<const std::string, std::string> kLongestWait{"reconnect.backoff.max.ms", "20"};

  const Kafka m_host = make(RD_KAFKA_PRODUCER, {});
  const std::unique_ptr<rd_kafka_mock_cluster_t, Free> m_brokers{::rd_kafka_mock_cluster_new(m_host.get(), 1)};
};

void send(const Kafka& producer, int partition, const std::string& text, Delivery* delivery = nullptr) {
  // not by the macros of the library, which clang does not take for C++
  EXPECT_EQ(::rd_kafka_producev(producer.get(), RD_KAFKA_VTYPE_TOPIC, kTopic, RD_KAFKA_VTYPE_PARTITION, partition,
                                RD_KAFKA_VTYPE_MSGFLAGS, RD_KAFKA_MSG_F_COPY, RD_KAFKA_VTYPE_VALUE, text.data(), text.size(),
                                RD_KAFKA_VTYPE_OPAQUE, delivery, RD_KAFKA_VTYPE_END),
            0);
}

rd_kafka_resp_err_t flush(const Kafka& producer, int ms = kPatienceMs) { return ::rd_kafka_flush(producer.get(), ms); }

/// The next message, or an error. What a consumer says of brokers that are down is none. It asks again after `ms`.
std::string receive(const Kafka& consumer, int ms) {
  for (;;) {
    const std::unique_ptr<rd_kafka_message_t, Free> message(::rd_kafka_consumer_poll(consumer.get(), ms));
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return {static_cast<const char*>(message->payload), message->len};
    if (message->err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && message->err != RD_KAFKA_RESP_ERR__TRANSPORT)
      return ::rd_kafka_message_errstr(message.get());
  }
}

class Rdkafka : public Crowds {};
INSTANTIATE_TEST_SUITE_P(Workers, Rdkafka, kOneAndTwo);

// HA-6. Each second fiber consumes what the one before it produces.
TEST_P(Rdkafka, AllWaitOverTheDeathOfTheBrokers) {
  Cluster cluster(Crowd::kSize);
  Event dead;
  const auto produce = [&](Crowd& us, int partition) {
    const Kafka producer = cluster.producer();
    std::array<Delivery, 10> deliveries;
    send(producer, partition, "0", &deliveries[0]);
    EXPECT_EQ(flush(producer), RD_KAFKA_RESP_ERR_NO_ERROR);
    us.arrive();
    EXPECT_TRUE(dead.wait());
    for (size_t i = 1; i < deliveries.size(); ++i) send(producer, partition, std::to_string(i), &deliveries[i]);
    EXPECT_EQ(flush(producer, 10), RD_KAFKA_RESP_ERR__TIMED_OUT);
    us.arrive();
    EXPECT_EQ(flush(producer), RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t offset = 0;
    for (Delivery& one : deliveries) EXPECT_EQ(one.offset.get_future().get(), offset++);
  };
  const auto consume = [&](Crowd& us, int partition) {
    const Kafka consumer = cluster.consumer(partition);
    EXPECT_EQ(receive(consumer, kPatienceMs), "0");
    us.arrive();
    us.arrive();
    for (int i = 1; i < 10; ++i) EXPECT_EQ(receive(consumer, kPatienceMs), std::to_string(i));
    EXPECT_EQ(::rd_kafka_consumer_close(consumer.get()), 0);
  };
  Crowd crowd(workers(), [&](Crowd& us, size_t i) {
    const int partition = static_cast<int>(i / 2);
    i % 2 == 0 ? produce(us, partition) : consume(us, partition);
  });
  crowd.untilWaiting(Crowd::kSize * 3 / 2);
  cluster.dies();
  dead.set();
  crowd.untilAllWait(2);
  cluster.returns();
}

// The callbacks of one producer are run by whichever fiber polls it, for others that wait for a future.
TEST_P(Rdkafka, FibersShareAProducerOfSlowBrokers) {
  constexpr int kRounds = 10;
  constexpr int kAnswerMs = 20;
  Cluster cluster(1);
  const Kafka producer = cluster.producer();
  cluster.answersAfter(kAnswerMs);
  std::atomic<size_t> sent{0};
  std::mutex mutex;
  std::set<int64_t> offsets;
  {
    Crowd crowd(workers(), [&](Crowd&, size_t i) {
      if (i < 4) {
        while (sent < (Crowd::kSize - 4) * kRounds) ::rd_kafka_poll(producer.get(), 10);
        return;
      }
      for (int round = 0; round < kRounds; ++round) {
        Delivery delivery;
        const Stopwatch watch;
        send(producer, 0, "text", &delivery);
        const int64_t offset = delivery.offset.get_future().get();
        EXPECT_GE(watch.elapsed(), std::chrono::milliseconds(kAnswerMs));
        ++sent;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(offsets.insert(offset).second) << offset;
      }
    });
    crowd.workersGoOn();
  }
  EXPECT_EQ(offsets.size(), (Crowd::kSize - 4) * kRounds);
  EXPECT_EQ(*offsets.begin(), 0);
}

// They ask again after a while, because the library wakes only one of those who wait at a consumer for several messages that come
// together.
TEST_P(Rdkafka, FibersShareAConsumer) {
  Cluster cluster(1);
  const Kafka consumer = cluster.consumer(0);
  std::mutex mutex;
  std::set<std::string> received;
  {
    Crowd crowd(workers(), [&](Crowd& us, size_t) {
      us.arrive();
      const std::string text = receive(consumer, 10);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(received.insert(text).second) << text;
    });
    crowd.untilAllWait();
    const Kafka producer = cluster.producer();
    for (size_t i = 0; i < Crowd::kSize; ++i) send(producer, 0, std::to_string(i));
    EXPECT_EQ(flush(producer), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  EXPECT_EQ(received.size(), Crowd::kSize);
  EXPECT_EQ(::rd_kafka_consumer_close(consumer.get()), 0);
}

}  // namespace
}  // namespace sylar::test
