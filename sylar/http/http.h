// sylar's include path for requests and responses.
#pragma once

#include "sylar/http/http_error.h"
#include "sylar/http/message.h"
