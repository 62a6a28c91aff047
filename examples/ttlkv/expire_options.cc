#include "expire_options.h"

#include <limits>

namespace ttlkv {

void replyInvalidExpire(Call& call) {
  reply::error(call.out, "ERR invalid expire time in '" + std::string(call.command.name) + "' command");
}

std::optional<int64_t> expiryOf(Call& call, const Expiry& expiry, int64_t now_ms) {
  const auto number = parseInteger(expiry.text);
  if (!number) {
    reply::error(call.out, reply::kNotAnInteger);
    return std::nullopt;
  }
  int64_t ms = *number;
  const bool is_wrong = ms <= 0 || __builtin_mul_overflow(ms, expiry.unit == TimeUnit::kSeconds ? 1000 : 1, &ms) ||
                        __builtin_add_overflow(ms, expiry.is_absolute ? 0 : now_ms, &ms);
  if (!is_wrong) return ms;
  replyInvalidExpire(call);
  return std::nullopt;
}

bool parseStringOptions(Call& call, size_t first, StringOptions::Which which, StringOptions& options) {
  const auto isTime = [](std::string_view word) -> std::optional<Expiry> {
    if (equalsIgnoringCase(word, "ex")) return Expiry{TimeUnit::kSeconds, false, {}};
    if (equalsIgnoringCase(word, "px")) return Expiry{TimeUnit::kMilliseconds, false, {}};
    if (equalsIgnoringCase(word, "exat")) return Expiry{TimeUnit::kSeconds, true, {}};
    if (equalsIgnoringCase(word, "pxat")) return Expiry{TimeUnit::kMilliseconds, true, {}};
    return std::nullopt;
  };
  for (size_t i = first; i < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    const bool is_set = which == StringOptions::kSet;
    if (is_set && !options.xx && equalsIgnoringCase(word, "nx")) {
      options.nx = true;
    } else if (is_set && !options.nx && equalsIgnoringCase(word, "xx")) {
      options.xx = true;
    } else if (is_set && equalsIgnoringCase(word, "get")) {
      options.get = true;
    } else if (is_set && !options.expiry && equalsIgnoringCase(word, "keepttl")) {
      options.keep_ttl = true;
    } else if (!is_set && !options.expiry && equalsIgnoringCase(word, "persist")) {
      options.persist = true;
    } else if (auto time = isTime(word);
               time && !options.keep_ttl && !options.persist && i + 1 < call.args.size() &&
               (!options.expiry || (options.expiry->unit == time->unit && options.expiry->is_absolute == time->is_absolute))) {
      time->text = call.args[++i];
      options.expiry = time;
    } else {
      reply::error(call.out, reply::kSyntaxError);
      return false;
    }
  }
  return true;
}

bool parseExpireOptions(Call& call, size_t first, ExpireOptions& options) {
  for (const std::string_view word : call.args.subspan(first)) {
    if (equalsIgnoringCase(word, "nx")) {
      options.nx = true;
    } else if (equalsIgnoringCase(word, "xx")) {
      options.xx = true;
    } else if (equalsIgnoringCase(word, "gt")) {
      options.gt = true;
    } else if (equalsIgnoringCase(word, "lt")) {
      options.lt = true;
    } else {
      reply::error(call.out, "ERR Unsupported option " + reply::printed(word));
      return false;
    }
  }
  if (options.nx && (options.xx || options.gt || options.lt)) {
    reply::error(call.out, "ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (options.gt && options.lt) {
    reply::error(call.out, "ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

bool ExpireOptions::allow(int64_t was_ms, int64_t at_ms) const {
  const bool was_volatile = was_ms != kNoExpiry;
  if (nx && was_volatile) return false;
  if (xx && !was_volatile) return false;
  // A key without a time to live counts as one that never expires.
  if (gt && (!was_volatile || at_ms <= was_ms)) return false;
  return !lt || !was_volatile || at_ms < was_ms;
}

}  // namespace ttlkv
