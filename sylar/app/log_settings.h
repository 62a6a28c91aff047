// Internal. The setting `logs`: what each logger does with its lines (sylar's log.yml).
#pragma once

#include <vector>

#include "sylar/config/config_error.h"
#include "sylar/config/config_preview.h"

namespace sylar {

/// Makes the setting, so that a load knows it. More calls do nothing.
void makeLogSettings();

/// What is wrong with what the setting is about to say. Touches nothing.
std::vector<ConfigError> checkLogSettings(const ConfigPreview& next);

/// Has the loggers do what the setting says. Not empty: what is wrong; then they do what they did before.
std::vector<ConfigError> applyLogSettings();

}  // namespace sylar
