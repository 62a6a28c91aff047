# How doxygen reads a page: pictures stand beside the pages, and a link to what the site does not have is plain text. That is a link to
# a heading, or to a file that is no page.
s@(!\[[^]]*\]\()[^ )]*/([^ /)]+\))@\1\2@g
s@(\]\([^ :)]+\.md)\)@\1\n)@g
s@(^|[^!])\[([^]]+)\]\((#[^ )\n]+|LICENSE|[^ :)\n]*/[^ :)\n]*)\)@\1\2@g
s@\n@@g
