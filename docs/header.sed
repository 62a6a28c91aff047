# How doxygen reads a header: the comment at its head describes the file, and what is indented in it is code.
1,/^#pragma once/ {
  s@^//(   )@///  \1@
  s@^//( |$)@///\1@
  1s@^/// @/// \\file \\ilinebr @
}
