// Internal. The addresses of a server, as its setting names them.
#pragma once

#include <string>
#include <vector>

#include "sylar/address.h"
#include "sylar/base/internal.h"

namespace sylar::detail {

/// Returns the rule that the form of `text` breaks, or "" if it breaks none.
std::string listenAddressRule(const std::string& text);

/// Returns the addresses that `text` stands for. Its form is ip:port, interface:port, name:port or, without a colon, the path of
/// a Unix socket or @ and its abstract name. Throws std::runtime_error, which says what would be right. Blocks while a name is
/// looked up.
std::vector<Address::ptr> resolveListenAddress(const std::string& text);

}  // namespace sylar::detail
