// Internal. The setting `logs` (sylar's log.yml), which says what each logger does with its lines. The loggers follow its
// changes.
#pragma once

#include <vector>

#include "sylar/base/internal.h"
#include "sylar/config/config_error.h"
#include "sylar/config/config_preview.h"

namespace sylar::detail {

/// Makes the setting. Further calls do nothing.
void makeLogSettings();

/// Returns the mistakes in the value that the setting is about to get. Changes nothing.
std::vector<ConfigError> checkLogSettings(const ConfigPreview& next);

/// Returns why the loggers still do what they did before the setting's last change; the errors are also logged. The list is empty
/// if they follow the setting.
std::vector<ConfigError> logSettingErrors();

}  // namespace sylar::detail
