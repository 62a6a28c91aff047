# How doxygen reads a page: pictures stand beside the pages, and a link to what the site does not have is plain text. That is a link to
# a heading, to a file that is no page, or to a page of examples/.
s@(!\[[^]]*\]\()[^ )]*/([^ /)]+\))@\1\2@g
s@(^|[^!])\[([^]]+)\]\(([^ :)]*examples/[^ )]*)\)@\1\2@g
s@(\]\([^ :)]+\.md)\)@\1\n)@g
s@(^|[^!])\[([^]]+)\]\((#[^ )\n]+|LICENSE|[^ :)\n]*/[^ :)\n]*)\)@\1\2@g
s@\n@@g
