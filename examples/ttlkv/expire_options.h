// SET, GETEX and EXPIRE have options, some of them with a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "command.h"

namespace ttlkv {

enum class TimeUnit : uint8_t { kSeconds, kMilliseconds };

/// A time to expire, as a client has written it.
struct Expiry {
  TimeUnit unit;
  bool is_absolute;
  std::string_view text;
};

/// Returns the unix time in ms that a SET or GETEX asks for. Replies with the error and returns nothing if it is no number, is
/// not positive, or is too large.
std::optional<int64_t> expiryOf(Call& call, const Expiry& expiry, int64_t now_ms);

/// The options of SET and GETEX.
struct StringOptions {
  enum Which { kSet, kGetex };
  bool nx = false, xx = false, get = false, keep_ttl = false, persist = false;
  std::optional<Expiry> expiry;
};

/// Parses the arguments from `first` on. Replies with an error and returns false if they contradict each other.
bool parseStringOptions(Call& call, size_t first, StringOptions::Which which, StringOptions& options);

/// The options of EXPIRE.
struct ExpireOptions {
  bool nx = false, xx = false, gt = false, lt = false;

  /// Returns whether a key that expires at `was_ms` may get the new time.
  bool allow(int64_t was_ms, int64_t at_ms) const;
};

bool parseExpireOptions(Call& call, size_t first, ExpireOptions& options);

/// Replies that the time is wrong, and names the command in lower case.
void replyInvalidExpire(Call& call);

}  // namespace ttlkv
