// On channels a client hears of keys that have expired, and of messages of other clients.
#include "command.h"

namespace ttlkv::commands {

namespace {

Subscriber& subscriberOf(Call& call) {
  auto& subscriber = call.session.subscriber;
  if (subscriber == nullptr) subscriber = std::make_unique<Subscriber>(call.session.outbox());
  return *subscriber;
}

void confirm(std::string& out, std::string_view what, std::optional<std::string_view> name, size_t subscriptions) {
  reply::array(out, 3);
  reply::bulk(out, what);
  name ? reply::bulk(out, *name) : reply::null(out);
  reply::integer(out, static_cast<int64_t>(subscriptions));
}

void subscribeTo(Call& call, Hub::Kind kind) {
  Subscriber& subscriber = subscriberOf(call);
  const auto& names = kind == Hub::kChannel ? subscriber.channels : subscriber.patterns;
  for (const std::string_view name : call.args.subspan(1)) {
    const size_t count = subscriber.count() + (names.contains(name) ? 0 : 1);
    confirm(call.out, call.command.name, name, count);
    // A message may come as soon as the hub knows the client, and must find the confirmation before it in the outbox.
    subscriber.outbox.append(call.out);
    call.out.clear();
    call.engine.hub().subscribe(subscriber, kind, name);
  }
}

void unsubscribeFrom(Call& call, Hub::Kind kind) {
  const auto* const subscriber = call.session.subscriber.get();
  std::vector<std::string> names(call.args.begin() + 1, call.args.end());
  if (names.empty() && subscriber != nullptr) {
    const auto& all = kind == Hub::kChannel ? subscriber->channels : subscriber->patterns;
    names.assign(all.begin(), all.end());
  }
  if (names.empty()) return confirm(call.out, call.command.name, std::nullopt, subscriber == nullptr ? 0 : subscriber->count());
  for (const std::string& name : names) {
    if (subscriber != nullptr) call.engine.hub().unsubscribe(*call.session.subscriber, kind, name);
    confirm(call.out, call.command.name, name, subscriber == nullptr ? 0 : subscriber->count());
  }
}

}  // namespace

void subscribe(Call& call) { subscribeTo(call, Hub::kChannel); }
void psubscribe(Call& call) { subscribeTo(call, Hub::kPattern); }
void unsubscribe(Call& call) { unsubscribeFrom(call, Hub::kChannel); }
void punsubscribe(Call& call) { unsubscribeFrom(call, Hub::kPattern); }

void publish(Call& call) { reply::integer(call.out, call.engine.hub().publish(call.args[1], call.args[2])); }

}  // namespace ttlkv::commands
