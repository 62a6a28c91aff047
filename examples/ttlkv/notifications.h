// The setting notify-keyspace-events selects the changes of keys that are published, and the channels.
//
// Only the class `x`, expired keys, has an effect here. The others are understood, so that clients may ask for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ttlkv {

/// The letters in the order in which Redis prints them. Bit i of a set stands for letter i.
inline constexpr std::string_view kNotificationLetters = "g$lshzxetdnKEm";
inline constexpr std::string_view kAllClasses = "g$lshzxetd";  // these are abbreviated as A

inline constexpr uint32_t notificationBit(char letter) { return uint32_t{1} << kNotificationLetters.find(letter); }
inline constexpr uint32_t kExpiredEvents = notificationBit('x');
inline constexpr uint32_t kKeyspaceChannels = notificationBit('K');
inline constexpr uint32_t kKeyeventChannels = notificationBit('E');

/// Returns the set that `text` spells, or nothing if it contains another letter.
inline std::optional<uint32_t> parseNotifications(std::string_view text) {
  uint32_t set = 0;
  for (const char letter : text) {
    if (letter == 'A') {
      for (const char each : kAllClasses) set |= notificationBit(each);
    } else if (kNotificationLetters.find(letter) != std::string_view::npos) {
      set |= notificationBit(letter);
    } else {
      return std::nullopt;
    }
  }
  return set;
}

inline std::string formatNotifications(uint32_t set) {
  std::string text;
  const uint32_t all = *parseNotifications("A");
  if ((set & all) == all) text = "A";
  for (const char letter : kNotificationLetters) {
    if ((set & notificationBit(letter)) == 0) continue;
    if (text.starts_with('A') && kAllClasses.find(letter) != std::string_view::npos) continue;
    text += letter;
  }
  return text;
}

}  // namespace ttlkv
