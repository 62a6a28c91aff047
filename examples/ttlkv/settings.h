// The settings `ttlkv.*` come from the YAML folder.
#pragma once

#include <functional>

#include "options.h"

namespace ttlkv {

/// Returns the present values. Thread safety: any thread.
Options readSettings();

/// Calls `listener` after a change of one of the settings that act at once. Must be called before the first load.
void onLiveSettings(std::function<void(const Options::Live&)> listener);

}  // namespace ttlkv
