// Internal. Where a server listens, as its setting says it.
#pragma once

#include <string>
#include <vector>

#include "sylar/net/address.h"

namespace sylar {

/// What is wrong with the form of `text`, and what would be right; "" if nothing is.
std::string listenAddressRule(const std::string& text);

/// The addresses that `text` stands for: ip:port, interface:port, name:port, or, without a colon, the path of a Unix socket.
/// Throws std::runtime_error with what would be right. Blocks while a name is looked up.
std::vector<Address::ptr> resolveListenAddress(const std::string& text);

}  // namespace sylar
