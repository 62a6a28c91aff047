// Internal. A second number for an open file.
#pragma once

namespace sylar {

/// `copy` is a second number for the open file of `fd`: from here on neither can remember what is set through the other. Its
/// result is `copy`; a negative one is passed on.
int duplicated(int fd, int copy);

}  // namespace sylar
